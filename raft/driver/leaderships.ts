/**
 * Moves leaderships between nodes: to preferred leaders, after the loss of a leader, and away from a node that should
 * not lead.
 */
import type { RandomBelow } from '../core-state.ts';
import type { Group } from './group.ts';
import { votersOf } from '../membership.ts';
import type { NodeId } from '../types.ts';

/** A successor that lacks more entries than this would delay proposals for too long. */
const BALANCE_LAG_ENTRIES_MAX = 64;
/** The number of balance rounds to wait before a failed transfer is repeated. */
const BALANCE_PATIENCE = 40;

/**
 * Hands at most one group to its preferred leader, so that leaderships spread out again slowly after a failover.
 * Returns that group.
 */
export function maybeBalance(groups: Iterable<Group>, tick: number, balanceTicks: number): Group | undefined {
  for (const group of groups) {
    const { core, preferredLeader } = group;
    if (core.role !== 'leader' || core.id === preferredLeader || tick < group.balanceAtTick) continue;
    if (!core.isReadyToLead(preferredLeader, BALANCE_LAG_ENTRIES_MAX)) continue;
    // A transfer blocks proposals, so a failed one is not repeated at once.
    group.balanceAtTick = tick + balanceTicks * BALANCE_PATIENCE;
    // Returns false if the preferred leader is no voter now.
    if (core.transferLeadership(preferredLeader)) return group;
  }
  return undefined;
}

/**
 * The leader's process is gone: campaign after a delay. Each surviving voter has another delay, in an order that
 * differs from group to group, so votes are rarely split.
 */
export function replaceLeader(group: Group, lost: NodeId, heartbeatTicks: number, random: RandomBelow): void {
  const { core } = group;
  const survivors = votersOf(core.config).filter((voter) => voter !== lost);
  const position = survivors.indexOf(core.id);
  const turn = position === -1 ? 0 : (position + group.id) % survivors.length;
  core.forgetLeader(1 + turn * heartbeatTicks + random(2));
}

/**
 * Hands a group that this node leads to another voter, which takes over once it has the whole log. Call it repeatedly:
 * after an attempt has ended, it tries the next voter, the one with the longest log first.
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
