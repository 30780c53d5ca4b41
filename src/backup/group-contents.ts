/**
 * Reads the whole snapshot of a group in the way that a replica does. So a backup that was written can be restored,
 * and its hashes are those of replicas. One state is held in memory, as large as on a node.
 */
import { createHash } from 'node:crypto';
import { InvalidSnapshotError } from '../limiter/state/snapshot-bytes.ts';
import type { RuleTable } from '../limiter/rules.ts';
import { LimiterStateMachine } from '../limiter/state-machine.ts';
import { META_GROUP } from '../meta/cluster-placement.ts';
import { decodeMetaRecord, MetaDecodeError, NewerClusterError } from '../meta/meta-form.ts';
import type { MetaRecord } from '../meta/cluster-state.ts';
import { BackupError } from './backup-error.ts';

/** What the snapshot of a group contains. */
export interface GroupContents {
  readonly stateHash: string;
  /** The rules in force; undefined in a partition that has no rules yet. */
  readonly rules: RuleTable | undefined;
  /** The record of the cluster; in group 0 only. */
  readonly record?: MetaRecord;
}

/** Takes the chunks of one group in order. */
export interface ContentsReader {
  add(chunk: Uint8Array): void;
  /** Call it after the last chunk. */
  complete(): GroupContents;
}

/** A reader for a group. Its methods throw BackupError if the snapshot is invalid. */
export function contentsReader(group: number): ContentsReader {
  const reader = group === META_GROUP ? metaReader() : partitionReader();
  const reported = <T>(work: () => T): T => {
    try {
      return work();
    } catch (error) {
      if (error instanceof NewerClusterError) throw new BackupError('foreign', error.message);
      if (error instanceof InvalidSnapshotError || error instanceof MetaDecodeError)
        throw new BackupError('damaged', `the snapshot of group ${group} cannot be read: ${error.message}`);
      throw error;
    }
  };
  return {
    add: (chunk) => reported(() => reader.add(chunk)),
    complete: () => reported(() => reader.complete()),
  };
}

function partitionReader(): ContentsReader {
  const machine = new LimiterStateMachine();
  const restore = machine.restore();
  return {
    add: (chunk) => restore.add(chunk),
    complete() {
      restore.complete();
      restore.install();
      return { stateHash: machine.hash(), rules: machine.ruleTable };
    },
  };
}

function metaReader(): ContentsReader {
  const chunks: Uint8Array[] = [];
  return {
    add: (chunk) => void chunks.push(chunk),
    complete() {
      const record = decodeMetaRecord(chunks);
      if (record === undefined) throw new BackupError('damaged', 'group 0 holds no cluster');
      return { stateHash: metaHash(record), rules: record.state.rules, record };
    },
  };
}

/** Hash of the part of group 0 that a restored cluster takes over; the nodes are not included. */
export function metaHash({ state: { rules, definitions, tokens } }: MetaRecord): string {
  // The document's text decides nothing, so it is not included; the manifest has a SHA-256 of its file.
  const text = JSON.stringify([rules ?? null, definitions ?? null, tokens ?? null]);
  return createHash('sha256').update(text).digest('hex').slice(0, 16);
}
