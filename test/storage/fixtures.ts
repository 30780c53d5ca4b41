/** Small builders and a temporary directory for the storage tests. */
import { cp, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import type { GroupWrite, LogStore, StagedChunks } from '../../raft/driver/store.ts';
import type { Entry, GroupId, LogPosition, SnapshotMeta } from '../../raft/types.ts';
import { bootstrapStore } from '../../storage/bootstrap-store.ts';
import type { LevelStore } from '../../storage/level-store.ts';
import { openStore, type OpenStoreOptions } from '../../storage/open-store.ts';
import type { ClusterFacts, StoreIdentity } from '../../storage/identity.ts';
import { FORMAT_VERSION } from '../../storage/records.ts';

export const FACTS: ClusterFacts = {
  clusterId: 'cluster-a',
  partitions: 4,
  replicas: 3,
  founders: [1, 2, 3].map((id) => ({ id, incarnation: `${id}`.repeat(32) })),
  hash: 'xxh32',
  formatVersion: FORMAT_VERSION,
};

export const IDENTITY: StoreIdentity = { nodeId: 1, incarnation: '1'.repeat(32), facts: FACTS };

/** A command whose payload contains its index and term. Group time is 10 ms an index by default. */
export function entry(index: number, term = 1, timeMillis = index * 10, bytes = 40): Entry {
  const data = new Uint8Array(bytes).fill(index % 251);
  data[0] = term;
  return { index, term, timeMillis, kind: 'command', data };
}

/** Entries `from`..`to` of one term. */
export function entries(from: number, to: number, term = 1, bytes = 40): Entry[] {
  const result: Entry[] = [];
  for (let index = from; index <= to; index += 1) result.push(entry(index, term, index * 10, bytes));
  return result;
}

export function position(index: number, term = 1, timeMillis = index * 10): LogPosition {
  return { index, term, timeMillis };
}

export function chunk(fill: number, bytes = 30): Uint8Array {
  return new Uint8Array(bytes).fill(fill);
}

export function meta(index: number, chunks: readonly Uint8Array[], term = 1): SnapshotMeta {
  let byteLength = 0;
  for (const one of chunks) byteLength += one.length;
  return { ...position(index, term), voters: [1, 2, 3], chunkCount: chunks.length, byteLength };
}

export interface Snapshot {
  readonly meta: SnapshotMeta;
  readonly chunks: readonly Uint8Array[];
}

export function snapshot(index: number, chunks: readonly Uint8Array[], term = 1): Snapshot {
  return { meta: meta(index, chunks, term), chunks };
}

export function staging(index: number, first: number, ...chunks: readonly Uint8Array[]): StagedChunks {
  return { index, first, chunks };
}

/** The part of a write that installs a snapshot and stages all of it. */
export function installing({ meta: of, chunks }: Snapshot): Pick<GroupWrite, 'stage' | 'install'> {
  return { ...(chunks.length > 0 && { stage: staging(of.index, 0, ...chunks) }), install: of };
}

/** The snapshot in effect, with all of its chunks. */
export async function storedSnapshot(store: LogStore, group: GroupId): Promise<Snapshot | undefined> {
  const of = (await store.load(group))?.snapshot;
  if (of === undefined) return undefined;
  const chunks: Uint8Array[] = [];
  for (let i = 0; i < of.chunkCount; i += 1) {
    const data = await store.readSnapshotChunk(group, of.index, i);
    if (data !== undefined) chunks.push(data);
  }
  return { meta: of, chunks };
}

/** A write that appends `list` to a group, with a hard state that matches them. */
export function append(group: GroupId, list: readonly Entry[], commit = 0): GroupWrite {
  const term = list.at(-1)?.term ?? 1;
  return { group, hardState: { term, vote: 1, commit }, entries: list };
}

export function written(store: LogStore, writes: readonly GroupWrite[]): Promise<void> {
  return new Promise((resolve, reject) => {
    store.write(writes, (error) => (error === undefined ? resolve() : reject(error)));
  });
}

/** An empty directory of its own, removed by `remove`. */
export async function scratch(): Promise<{ directory: string; remove: () => Promise<void> }> {
  const directory = await mkdtemp(join(tmpdir(), 'quorate-store-'));
  return { directory, remove: () => rm(directory, { recursive: true, force: true }) };
}

export async function createStore(directory: string, options?: OpenStoreOptions): Promise<LevelStore> {
  await bootstrapStore(directory, IDENTITY);
  return openStore(directory, IDENTITY, options);
}

/**
 * Copies the files of an open store: the contents of a disk whose process was killed at this moment. LOCK is left
 * out, since reading it would drop LevelDB's lock.
 */
export async function copyAsAfterCrash(from: string, to: string): Promise<void> {
  await cp(from, to, { recursive: true, filter: (path) => basename(path) !== 'LOCK' });
}
