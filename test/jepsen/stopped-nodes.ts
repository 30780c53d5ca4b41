/**
 * Opens the databases of a cluster whose nodes have all stopped, and reads their groups one at a time. Opening verifies
 * everything in them; nothing else is changed.
 */
import { readdir } from 'node:fs/promises';
import type { Entry, GroupId, NodeId, SnapshotMeta, StoredGroup } from '../../raft/types.ts';
import { nodeDirectory, readCluster } from '../../src/config/cluster-directory.ts';
import { factsOf } from '../../src/config/cluster-facts.ts';
import type { ClusterConfig } from '../../src/config/config.ts';
import type { LevelStore } from '../../storage/level-store.ts';
import type { DurableGroup } from '../../storage/memory-store.ts';
import { openStore } from '../../storage/open-store.ts';
import { type Archive, readArchive } from './archive.ts';

/** One group as each node has it, by node. */
export type Replicas = ReadonlyMap<NodeId, DurableGroup>;

export interface StoppedNodes {
  readonly config: ClusterConfig;
  /** Databases that could not be opened, and why. */
  readonly unreadable: readonly { readonly node: NodeId; readonly reason: string }[];
  /** The archived entries that the nodes deleted from their logs. */
  readonly archive: Archive;
  groups(): GroupId[];
  load(group: GroupId): Promise<Replicas>;
  close(): Promise<void>;
}

/** @param directory that of the cluster: `cluster.json`, and `node-<id>/` for each node. */
export async function openStoppedNodes(directory: string, archiveDirectory?: string): Promise<StoppedNodes> {
  const config = await readCluster(directory);
  if (config === undefined) throw new Error(`there is no cluster in ${directory}`);
  const archive = await readArchive(archiveDirectory);
  const stores = new Map<NodeId, LevelStore>();
  const unreadable: { node: NodeId; reason: string }[] = [];
  const names = await readdir(directory);
  const nodes = names.flatMap((name) => /^node-(\d+)$/.exec(name)?.[1] ?? []).map(Number);
  for (const nodeId of nodes.sort((a, b) => a - b)) {
    const identity = { nodeId, facts: factsOf(config) };
    try {
      stores.set(nodeId, await openStore(nodeDirectory(directory, nodeId), identity));
    } catch (error) {
      unreadable.push({ node: nodeId, reason: error instanceof Error ? error.message : String(error) });
    }
  }
  return {
    config,
    unreadable,
    archive,
    groups: () => [...new Set([...stores.values()].flatMap((store) => store.groups()))].sort((a, b) => a - b),
    async load(group) {
      const replicas = new Map<NodeId, DurableGroup>();
      for (const [node, store] of stores) {
        const stored = await store.load(group);
        // A removed replica leaves only a tombstone.
        if (stored === undefined || stored.removed) continue;
        replicas.set(node, { ...stored, chunks: await chunksOf(store, group, stored.snapshot) });
      }
      return replicas;
    },
    async close() {
      for (const store of stores.values()) await store.close();
    },
  };
}

async function chunksOf(
  store: LevelStore,
  group: GroupId,
  snapshot: SnapshotMeta | undefined,
): Promise<Uint8Array[]> {
  const chunks: Uint8Array[] = [];
  for (let i = 0; i < (snapshot?.chunkCount ?? 0); i += 1) {
    const chunk = await store.readSnapshotChunk(group, snapshot?.index ?? 0, i);
    if (chunk !== undefined) chunks.push(chunk);
  }
  return chunks;
}

export function lastOf({ base, entries }: StoredGroup): { readonly index: number; readonly term: number } {
  return entries.at(-1) ?? base;
}

export function entryAt({ base, entries }: StoredGroup, index: number): Entry | undefined {
  return entries[index - base.index - 1];
}

/**
 * The replica that would win an election against all others. By Leader Completeness its log holds everything that was
 * ever committed. If it takes part, its further entries survive as well.
 */
export function fullestReplica(replicas: Replicas): DurableGroup | undefined {
  let fullest: DurableGroup | undefined;
  for (const stored of replicas.values()) {
    const [mine, best] = [lastOf(stored), fullest === undefined ? undefined : lastOf(fullest)];
    if (best === undefined || mine.term > best.term || (mine.term === best.term && mine.index > best.index)) {
      fullest = stored;
    }
  }
  return fullest;
}

/** The index up to which a log equals the fullest one, as far as both still have the entries. */
export function sameThrough(stored: StoredGroup, fullest: StoredGroup): number {
  const from = Math.max(stored.base.index, fullest.base.index);
  const to = Math.min(lastOf(stored).index, lastOf(fullest).index);
  if (from > to) return Math.min(lastOf(stored).index, fullest.base.index);
  for (let index = from + 1; index <= to; index += 1) {
    const [mine, other] = [entryAt(stored, index), entryAt(fullest, index)];
    if (mine === undefined || other === undefined || !isSameEntry(mine, other)) return index - 1;
  }
  return to;
}

/**
 * A log together with the entries that its node has deleted, as far as other nodes or the archive have them. Logs that
 * have one entry in common are equal before it.
 */
export function wholeLog(
  replicas: Replicas,
  stored: StoredGroup,
  archived: (index: number, term: number) => readonly Entry[],
): Entry[] {
  let { base } = stored;
  let entries = [...stored.entries];
  for (;;) {
    const { index, term } = base;
    const longer = [...replicas.values()].find(
      (other) => other.base.index < index && entryAt(other, index)?.term === term,
    );
    if (longer === undefined) return [...archived(index, term), ...entries];
    entries = [...longer.entries.slice(0, index - longer.base.index), ...entries];
    base = longer.base;
  }
}

export function isSameEntry(a: Entry, b: Entry): boolean {
  return (
    a.term === b.term &&
    a.timeMillis === b.timeMillis &&
    a.kind === b.kind &&
    Buffer.compare(a.data, b.data) === 0
  );
}

/**
 * Everything up to here is certainly committed. A node's recorded commit index may lag, because it is written with the
 * next write. But an entry of the newest term of all that a majority holds is committed: no node without it can ever be
 * elected.
 *
 * @param copies the number of copies of the group, in case some node is not readable
 */
export function committedThrough(replicas: Replicas, fullest: StoredGroup, copies: number): number {
  let committed = 0;
  for (const { hardState, snapshot } of replicas.values()) {
    committed = Math.max(committed, hardState.commit, snapshot?.index ?? 0);
  }
  const held = [...replicas.values()].map((stored) => sameThrough(stored, fullest)).sort((a, b) => b - a);
  const chosen = held[Math.floor(Math.max(copies, replicas.size) / 2)] ?? 0;
  const isNewestTerm = entryAt(fullest, chosen)?.term === lastOf(fullest).term;
  return isNewestTerm ? Math.max(committed, chosen) : committed;
}
