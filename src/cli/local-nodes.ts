/**
 * Which nodes have a database in a directory, and which of them belong to the cluster as far as these databases know.
 * For scripts that run before any node can be asked. See member-cache.ts for how reliable that is.
 */
import { readdir } from 'node:fs/promises';
import type { NodeId } from '../../raft/types.ts';
import { hasStore } from '../../storage/files.ts';
import { nodeDirectory } from '../config/cluster-directory.ts';
import type { ClusterConfig } from '../config/config.ts';
import { type KnownMembers, readKnownMembers } from '../node/member-cache.ts';

/** The nodes of a directory. */
export interface LocalNodes {
  /** Ids of the nodes with a database in the directory. */
  readonly here: readonly NodeId[];
  /** Ids of the nodes in the newest list that any database knows. If there is none yet, the founders. */
  readonly members: readonly NodeId[];
  /** Ids of nodes that are known to be removed. */
  readonly removed: ReadonlySet<NodeId>;
}

/** Reads the databases in a directory. */
export async function localNodes(directory: string, { founders }: ClusterConfig): Promise<LocalNodes> {
  const here: NodeId[] = [];
  const removed = new Set<NodeId>();
  let newest: KnownMembers | undefined;
  for (const name of await readdir(directory)) {
    const id = Number(/^node-(\d+)$/.exec(name)?.[1] ?? 0);
    const database = nodeDirectory(directory, id);
    if (id === 0 || !(await hasStore(database))) continue;
    here.push(id);
    const known = await readKnownMembers(database);
    if (known === undefined) continue;
    if (known.isRemoved) removed.add(id);
    if (newest === undefined || isNewer(known, newest)) newest = known;
  }
  for (const id of newest?.retired ?? []) if (newest?.nodes.includes(id) !== true) removed.add(id);
  const members =
    newest !== undefined && newest.nodes.length > 0 ? newest.nodes : founders.map(({ id }) => id);
  return { here: here.sort((a, b) => a - b), members, removed };
}

function isNewer(a: KnownMembers, b: KnownMembers): boolean {
  return a.version > b.version || (a.version === b.version && a.settledVersion > b.settledVersion);
}
