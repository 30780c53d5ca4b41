/** Who should lead which group: the load spreads over the nodes, and a node that goes leaves no group without. */
import type { RandomBelow } from '../core-state.ts';
import type { Group } from './group.ts';
import { votersOf } from '../membership.ts';
import type { NodeId } from '../types.ts';

/** A successor that lacks more than this would keep proposals waiting for too long. */
const BALANCE_LAG_ENTRIES_MAX = 64;
/** Looks to wait before a transfer that failed is tried again. */
const BALANCE_PATIENCE = 40;

/** Hands one group to its preferred leader, so that after a failover the load spreads out again, gently. Returns which. */
export function maybeBalance(groups: Iterable<Group>, tick: number, balanceTicks: number): Group | undefined {
  for (const group of groups) {
    const { core, preferredLeader } = group;
    if (core.role !== 'leader' || core.id === preferredLeader || tick < group.balanceAtTick) continue;
    if (!core.isReadyToLead(preferredLeader, BALANCE_LAG_ENTRIES_MAX)) continue;
    // Nothing is proposed during a transfer, so one that failed is not tried again at once.
    group.balanceAtTick = tick + balanceTicks * BALANCE_PATIENCE;
    // A preferred leader that is a learner now is none.
    if (core.transferLeadership(preferredLeader)) return group;
  }
  return undefined;
}

/** The leader's process is gone. The survivors take turns, in an order that differs from group to group. */
export function replaceLeader(group: Group, lost: NodeId, heartbeatTicks: number, random: RandomBelow): void {
  const { core } = group;
  // Thus votes are rarely split.
  const survivors = votersOf(core.config).filter((voter) => voter !== lost);
  const position = survivors.indexOf(core.id);
  const turn = position === -1 ? 0 : (position + group.id) % survivors.length;
  core.forgetLeader(1 + turn * heartbeatTicks + random(2));
}

/**
 * Hands a group that this node leads to another voter, which takes over when it has all of the log. Asked again and again,
 * it lets one attempt end before it tries the next: whoever has most of the log and was not tried yet.
 */
export function handOver({ core, handedTo }: Group): void {
  if (core.role !== 'leader' || core.isTransferring) return;
  const able = core.successors;
  if (able.every((voter) => handedTo.has(voter))) handedTo.clear();
  const successor = able.find((voter) => !handedTo.has(voter));
  if (successor === undefined) return;
  handedTo.add(successor);
  core.transferLeadership(successor);
}
