/**
 * A disk that may go back to an older copy: what is copied, and whether the node has promised anything that it would
 * forget.
 */
import type { GroupId, NodeId } from '../../raft/types.ts';
import { diskOf, type GroupHistory, isOnQuorum } from './group-history.ts';
import type { DiskMirror } from './mirror.ts';

/** The disk of one node at some moment, by group. */
export type DiskCopy = ReadonlyMap<GroupId, DiskMirror>;

/** Copies the disk of `node`, so that it may be put back. */
export function copyOf(groups: ReadonlyMap<GroupId, GroupHistory>, node: NodeId): DiskCopy {
  const copy = new Map<GroupId, DiskMirror>();
  for (const [id, group] of groups) {
    const disk = group.disks.get(node);
    if (disk !== undefined) copy.set(id, disk.copy());
  }
  return copy;
}

/**
 * Whether the disk of `node` may go back to `copy` without breaking a promise: no vote and no membership change is
 * forgotten, and everything else that is forgotten is on a quorum besides this node. See
 * docs/internals/raft.md, "A disk that forgot".
 */
export function mayGoBack(
  groups: ReadonlyMap<GroupId, GroupHistory>,
  {
    node,
    copy,
    gone,
  }: { readonly node: NodeId; readonly copy: DiskCopy; readonly gone: ReadonlySet<NodeId> },
): boolean {
  for (const [id, group] of groups) {
    const disk = group.disks.get(node);
    const old = copy.get(id);
    if (disk === undefined) continue;
    if (old === undefined || old.term !== disk.term || old.vote !== disk.vote) return false;
    // It would act by a configuration that the others have left, where it might be the last member of a quorum.
    if (old.commit < (group.configs.at(-1)?.index ?? 0)) return false;
    for (let index = old.baseIndex + 1; index <= disk.lastIndex; index += 1) {
      const term = disk.termAt(index) ?? group.log[index]?.entry.term;
      if (term === undefined) return false;
      if (index <= old.lastIndex && old.holds(index, term)) continue;
      const isElsewhere = isOnQuorum(group, (voter) => {
        const other = diskOf(group, voter);
        return voter !== node && !gone.has(voter) && index <= other.lastIndex && other.holds(index, term);
      });
      if (!isElsewhere) return false;
    }
  }
  return true;
}
