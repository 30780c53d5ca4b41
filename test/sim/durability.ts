/**
 * Nothing committed is ever lost: it is on a quorum of disks when it is committed, stays there, and no node without it
 * could win an election.
 */
import { isVoterOf } from '../../raft/membership.ts';
import type { Entry, NodeId } from '../../raft/types.ts';
import { campaignConfigs, decidersOf, isMajority } from './configs.ts';
import { diskOf, type GroupHistory, holdsCommitted, isOnQuorum } from './group-history.ts';
import type { DiskMirror } from './mirror.ts';
import { check } from './story.ts';

/** At this moment a quorum of disks has the entry. Every later write checks that a quorum keeps it. */
export function checkQuorum(group: GroupHistory, entry: Entry): void {
  const holders = new Set<NodeId>();
  for (const [replica, disk] of group.disks) {
    if (!disk.holds(entry.index, entry.term) || disk.lastIndex < entry.index) continue;
    holders.add(replica);
    if (group.durable.get(replica) === entry.index - 1) group.durable.set(replica, entry.index);
  }
  check(
    decidersOf(group.configs, entry.index).some((config) => isMajority(config, (node) => holders.has(node))),
    () =>
      `durability: entry ${entry.index} of group ${group.id} is committed, but only on disks ${[...holders].join(' ')}`,
  );
}

/** A disk may forget only what no quorum needs. Nodes in `gone` do not count for a quorum. */
export function checkStillDurable(group: GroupHistory, node: NodeId, gone: ReadonlySet<NodeId>): void {
  const disk = diskOf(group, node);
  const before = group.durable.get(node) ?? 0;
  let durable = before;
  while (durable > 0 && !holdsCommitted(group, disk, durable)) durable -= 1;
  // A replica with an old term may lose an uncounted copy to a leader with an old term.
  for (let index = durable + 1; index <= before && !gone.has(node); index += 1) {
    check(
      isOnQuorum(group, (voter) => holdsCommitted(group, diskOf(group, voter), index)),
      () => `durability: ${disk.name} forgot entry ${index}, so it is on a quorum no more`,
    );
  }
  while (durable < group.committedIndex) {
    const next = group.log[durable + 1]?.entry.term;
    if (next === undefined || !disk.holds(durable + 1, next)) break;
    durable += 1;
  }
  group.durable.set(node, durable);
}

/** A disk that records an entry as committed has that very entry, and so has a quorum of disks. */
export function checkClaimed(group: GroupHistory, disk: DiskMirror, commit: number): void {
  if (commit <= disk.baseIndex) return;
  const term = disk.termAt(commit);
  check(term !== undefined, () => `${disk.name} says that ${commit} is committed, but does not hold it`);
  const known = group.log[commit]?.entry.term;
  const isCommitted =
    known === undefined
      ? isOnQuorum(group, (voter) => diskOf(group, voter).holds(commit, term))
      : known === term;
  check(
    isCommitted,
    () => `${disk.name} says that entry ${commit} of term ${term} is committed, but it is not`,
  );
}

/**
 * Being on a quorum of disks is not enough (Raft paper, figure 8): no node without the entry may be able to win an
 * election, now or ever. A leader that counts copies of entries of earlier terms breaks this long before it shows. A
 * change of the configuration must not let such a node win either, by whichever of the two configurations it campaigns.
 */
export function checkElectable(group: GroupHistory, entry: Entry): void {
  for (const [node, candidate] of group.disks) {
    if (candidate.lastIndex >= entry.index && candidate.holds(entry.index, entry.term)) continue;
    if (!candidate.takesPart) continue;
    const votes = (voter: NodeId): boolean => {
      const disk = diskOf(group, voter);
      return disk.takesPart && disk.wouldElect(candidate);
    };
    for (const config of campaignConfigs(group.configs, candidate)) {
      if (!isVoterOf(config, node)) continue;
      check(
        !isMajority(config, votes),
        () =>
          `entry ${entry.index} of group ${group.id} is committed, but ${candidate.name} could win without it`,
      );
    }
  }
}
