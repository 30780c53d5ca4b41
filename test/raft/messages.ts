/** Hand-made messages from other nodes to node 1. */
import type { Append, AppendResponse, InstallSnapshot, Message, NodeId } from '../../raft/types.ts';
import { withChunks } from './machine.ts';
import { entriesAfter } from './stored-log.ts';

export interface AppendFields {
  readonly from?: NodeId;
  readonly term: number;
  /** Index and term of the entry before. */
  readonly prev: readonly [number, number];
  /** The terms of its entries. */
  readonly terms: readonly number[];
  readonly commit?: number;
}

export function appendOf({ from = 2, term, prev, terms, commit = 0 }: AppendFields): Append {
  const [prevIndex, prevTerm] = prev;
  const entries = entriesAfter(prevIndex, terms);
  return { type: 'append', from, to: 1, term, prevIndex, prevTerm, entries, commit, timeMillis: 1_000 };
}

export interface SnapshotFields {
  readonly from?: NodeId;
  readonly term: number;
  /** Index and term of the last entry in it. */
  readonly last: readonly [number, number];
}

export function installOf({ from = 2, term, last }: SnapshotFields): InstallSnapshot {
  const [index, lastTerm] = last;
  const timeMillis = index * 10;
  const chunk = new TextEncoder().encode(JSON.stringify({ index, digest: 7 }));
  const voters = [1, 2, 3];
  const meta = { index, term: lastTerm, timeMillis, voters, chunkCount: 1, byteLength: chunk.length };
  return { type: 'snapshot', from, to: 1, term, meta: withChunks({ meta, chunks: [chunk] }), timeMillis };
}

export function isAppend(message: Message): message is Append {
  return message.type === 'append';
}

export function isAppendResponse(message: Message): message is AppendResponse {
  return message.type === 'appendResponse';
}
