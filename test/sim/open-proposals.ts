/**
 * Entries that leaders proposed and that are not committed yet. A request that was reported as not proposed must not be
 * in an entry that may still be committed. An entry may be committed as long as a replica that has it on disk could win
 * an election, whether or not one does.
 */
import { isVoterOf } from '../../raft/membership.ts';
import type { Entry, NodeId } from '../../raft/types.ts';
import { loggedRequests } from './logged-entries.ts';
import { campaignConfigs, isMajority } from './configs.ts';
import { diskOf, type GroupHistory, positionKey } from './group-history.ts';
import type { DiskMirror } from './mirror.ts';

export function proposed(group: GroupHistory, entry: Entry): void {
  if (entry.kind === 'command') group.proposals.set(positionKey(entry), { entry, requestIds: undefined });
}

/** `index` is committed, so no other entry can be there, and nothing about it is in doubt. */
export function decided(group: GroupHistory, index: number): void {
  for (const [key, { entry }] of group.proposals) if (entry.index <= index) group.proposals.delete(key);
}

/** An entry with this request that may still be committed, if there is one. */
export function openProposalOf(
  group: GroupHistory,
  requestId: string,
  gone: ReadonlySet<NodeId>,
): Entry | undefined {
  for (const proposal of group.proposals.values()) {
    proposal.requestIds ??= requestIdsOf(proposal.entry);
    if (proposal.requestIds.has(requestId) && mayBeCommitted(group, proposal.entry, gone))
      return proposal.entry;
  }
  return undefined;
}

function requestIdsOf({ data }: Entry): ReadonlySet<string> {
  const asked = loggedRequests(data).filter(({ isRefund }) => isRefund !== true);
  const ids = asked.map(({ requestId }) => requestId);
  return new Set(ids.filter((id) => id !== undefined));
}

function mayBeCommitted(group: GroupHistory, { index, term }: Entry, gone: ReadonlySet<NodeId>): boolean {
  const couldWin = (node: NodeId, candidate: DiskMirror): boolean => {
    const votes = (voter: NodeId): boolean => {
      const disk = diskOf(group, voter);
      return !gone.has(voter) && disk.takesPart && disk.wouldElect(candidate);
    };
    return campaignConfigs(group.configs, candidate).some(
      (config) => isVoterOf(config, node) && isMajority(config, votes),
    );
  };
  return [...group.disks].some(
    ([node, disk]) =>
      !gone.has(node) &&
      index > disk.baseIndex &&
      disk.holds(index, term) &&
      disk.takesPart &&
      couldWin(node, disk),
  );
}
