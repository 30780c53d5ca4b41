/**
 * Changing the members of a running group. Each replica acts on a configuration once it has applied the entry;
 * docs/internals/raft.md argues why that is safe. Only one change runs at a time. A change of voters takes three
 * entries: one enters the joint configuration, one leaves it, and a no-op confirms the end.
 */
import { assert } from './assert.ts';
import type { CoreState } from './core-state.ts';
import {
  acceptsProposals,
  advanceCommit,
  appendEntry,
  appendNoop,
  broadcastAppend,
  endTransfer,
  sendHeartbeat,
  successors,
} from './leader.ts';
import type { Leadership } from './leadership.ts';
import {
  changedConfig,
  decodeConfig,
  encodeConfig,
  isJoint,
  isSuccessor,
  leaveJoint,
  membersOf,
  type MembershipChange,
  type MembershipRefusal,
} from './membership.ts';
import type { Progress } from './progress.ts';
import { isQuorum } from './quorum.ts';
import { NO_NODE, type Entry, type GroupConfig } from './types.ts';

/**
 * A learner that lacks more entries than this would delay commits as soon as it counts. A learner that keeps pace
 * is promoted anyway: under load, a distant node or one with a slow disk always lacks the entries of its last round
 * trip.
 */
const PROMOTION_LAG_ENTRIES_MAX = 64;

/** Appends the entry that begins `change` and returns it. On a refusal, returns the reason and does nothing. */
export function proposeChange(
  state: CoreState,
  change: MembershipChange,
  epoch: number,
): Entry | MembershipRefusal {
  const { log, leadership } = state;
  if (leadership === undefined) return 'notLeader';
  if (!acceptsProposals(state, leadership)) return 'transferring';
  if (isChanging(state)) return 'changePending';
  assert(
    log.termAt(log.committed) === state.term,
    'a leader must have committed its no-op before it changes members',
  );
  const next = changedConfig(state.config, change, epoch);
  if (typeof next === 'string') return next;
  const isCaughtUp = ({ kind, node }: MembershipChange[number]): boolean =>
    kind !== 'promote' || isAlmostCaughtUp(leadership.progress.get(node), log.lastIndex);
  if (!change.every(isCaughtUp)) return 'learnerBehind';
  if (!isQuorum(next, (node) => leadership.isReachable(node))) return 'wouldLoseQuorum';
  return appendConfig(state, leadership, next);
}

function isAlmostCaughtUp(learner: Progress | undefined, lastIndex: number): boolean {
  if (learner === undefined || !learner.isReachable || learner.state !== 'replicate') return false;
  if (learner.match < learner.since) return false;
  return learner.keepsPace || learner.match + PROMOTION_LAG_ENTRIES_MAX >= lastIndex;
}

function appendConfig(state: CoreState, leadership: Leadership, config: GroupConfig): Entry {
  assert(
    state.log.applied >= leadership.pendingConfigIndex,
    'only one change of the configuration may be under way',
  );
  assert(isSuccessor(state.config, config), 'a configuration must follow the one in effect');
  const entry = appendEntry(state, leadership, 'config', encodeConfig(config));
  leadership.pendingConfigIndex = entry.index;
  broadcastAppend(state, leadership);
  return entry;
}

/**
 * Proposes to leave a joint configuration. Any leader does this, so a change completes even if leaders change.
 * Called after every applied entry and every tick, because a transfer postpones it.
 */
export function leaveJointIfDue(state: CoreState): void {
  const { leadership } = state;
  if (leadership === undefined || !isJoint(state.config)) return;
  if (!acceptsProposals(state, leadership) || state.log.applied < leadership.pendingConfigIndex) return;
  appendConfig(state, leadership, leaveJoint(state.config));
}

/** A `config` entry was applied: this replica acts on it from now on. */
export function applyConfig(state: CoreState, entry: Entry): void {
  const config = decodeConfig(entry.data);
  assert(config !== undefined, 'config entry {} contains no valid configuration', entry.index);
  assert(isSuccessor(state.config, config), 'config entry {} does not follow the previous one', entry.index);
  assert(
    state.role === 'follower' || state.role === 'leader',
    'a {} must not count votes while the configuration is being replaced',
    state.role,
  );
  const isComplete = isJoint(state.config) && !isJoint(config);
  state.config = config;
  if (state.leadership !== undefined) leadUnderNewConfig(state, state.leadership, isComplete);
}

/** The highest epoch of the configuration in effect and of the `config` entries in the log. */
export function newestEpoch({ config, log }: CoreState): number {
  let newest = config.epoch;
  for (const entry of log.configEntries(log.applied + 1, log.lastIndex)) {
    newest = Math.max(newest, decodeConfig(entry.data)?.epoch ?? 0);
  }
  return newest;
}

/**
 * Whether this replica came back after a removal and still lacks what it acknowledged before. It takes no part in
 * elections until its log reaches a configuration newer than the removal (docs/internals/raft.md).
 */
export function hasForgotten(state: CoreState): boolean {
  return state.removedAt > 0 && newestEpoch(state) <= state.removedAt;
}

/**
 * Whether a change is under way. On a leader also true if its predecessor may have begun one, or a quorum may not
 * know yet that the last is complete.
 */
export function isChanging(state: CoreState): boolean {
  const { leadership, log, config } = state;
  return isJoint(config) || (leadership !== undefined && log.applied < leadership.pendingConfigIndex);
}

function leadUnderNewConfig(state: CoreState, leadership: Leadership, isComplete: boolean): void {
  const members = membersOf(state.config);
  for (const [peer, progress] of leadership.progress) {
    if (members.includes(peer)) continue;
    // A last heartbeat informs the peer that it was removed, so that it stops asking for votes.
    if (peer !== state.id) sendHeartbeat(state, peer, progress);
    leadership.progress.delete(peer);
  }
  const { lastIndex } = state.log;
  for (const member of members) {
    if (leadership.progress.has(member)) continue;
    // Counts as just heard from: a node that is starting must not count as unreachable.
    leadership.addProgress(member, { next: lastIndex + 1, since: lastIndex }).heard();
  }
  if (!state.config.voters.includes(leadership.transferTarget)) endTransfer(leadership);
  // When this no-op is committed, a quorum of the new voters has the end of the change on disk and no longer needs
  // the old ones.
  if (isComplete) appendNoop(state, leadership);
  // A smaller set of voters may have a quorum for entries that the larger set had not.
  advanceCommit(state, leadership);
  broadcastAppend(state, leadership);
}

/**
 * A leader that is no longer a voter goes on leading, without counting itself, until the change is complete. Then
 * it asks the voter with the longest log to take over. If it stepped down earlier, the others might need its vote:
 * it must refuse them if its log is longer, and may not campaign itself (etcd-io/etcd#12359).
 */
export function stepDownIfRemoved(state: CoreState): void {
  const { leadership } = state;
  if (leadership === undefined || state.isVoter() || isChanging(state)) return;
  const [successor] = successors(state, leadership);
  if (successor !== undefined)
    state.send({ type: 'timeoutNow', from: state.id, to: successor, term: state.term });
  state.becomeFollower(state.term, NO_NODE);
}
