/**
 * The state machine in tests of the core: the number of applied entries and a digest of them. Its snapshots have one
 * chunk.
 */
import type { Entry, GroupConfig, LogPosition, SnapshotMeta } from '../../raft/types.ts';

export interface Machine {
  readonly index: number;
  readonly digest: number;
}

export const EMPTY: Machine = { index: 0, digest: 0 };

export function applyTo(machine: Machine, entry: Entry): Machine {
  let digest = Math.imul(machine.digest ^ entry.term, 0x01000193) ^ entry.index;
  for (const byte of entry.data) digest = Math.imul(digest ^ byte, 0x01000193);
  return { index: entry.index, digest: digest >>> 0 };
}

export interface Snapshot {
  readonly meta: SnapshotMeta;
  readonly chunks: readonly Uint8Array[];
}

export function snapshotOf(machine: Machine, at: LogPosition, config: GroupConfig): Snapshot {
  const chunk = new TextEncoder().encode(JSON.stringify(machine));
  const { index, term, timeMillis } = at;
  const meta = { index, term, timeMillis, ...config, chunkCount: 1, byteLength: chunk.length };
  return { meta, chunks: [chunk] };
}

export function machineOf({ chunks }: Snapshot): Machine {
  return JSON.parse(new TextDecoder().decode(chunks[0])) as Machine;
}

/** The driver stages chunks before the core gets a snapshot; here they are found by its meta. */
const CHUNKS = new WeakMap<SnapshotMeta, readonly Uint8Array[]>();

export function withChunks({ meta, chunks }: Snapshot): SnapshotMeta {
  CHUNKS.set(meta, chunks);
  return meta;
}

export function readBack(meta: SnapshotMeta): Snapshot {
  const chunks = CHUNKS.get(meta);
  if (chunks === undefined) throw new Error(`nobody knows the chunks of snapshot ${meta.index}`);
  return { meta, chunks };
}
