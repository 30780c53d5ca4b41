/**
 * Changing the members of a running group. A configuration takes effect on each replica when that replica applies
 * its entry; raft/README.md argues why that is safe. One change at a time, and a change of voters is three entries:
 * into the joint configuration, once the leader has applied that, out of it, and a no-op to confirm it.
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
 * A learner that lacks more than this would hold up commits as soon as it counts, unless it keeps pace: under load a
 * node that is far away, or whose disk is slower, always lacks what came during its last round trip.
 */
const PROMOTION_LAG_ENTRIES_MAX = 64;

/** Appends the entry that begins `change`, or says why not; then nothing has happened. */
export function proposeChange(
  state: CoreState,
  change: MembershipChange,
  epoch: number,
): Entry | MembershipRefusal {
  const { log, leadership } = state;
  if (leadership === undefined) return 'notLeader';
  if (!acceptsProposals(state, leadership)) return 'transferring';
  if (isChanging(state)) return 'changePending';
  assert(log.termAt(log.committed) === state.term, 'a leader that changes members has committed its no-op');
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
  assert(state.log.applied >= leadership.pendingConfigIndex, 'one change of the configuration at a time');
  assert(isSuccessor(state.config, config), 'a configuration follows the one in effect');
  const entry = appendEntry(state, leadership, 'config', encodeConfig(config));
  leadership.pendingConfigIndex = entry.index;
  broadcastAppend(state, leadership);
  return entry;
}

/**
 * A joint configuration is in effect: propose to leave it. Whoever leads does, so that a change completes however
 * many leaders it takes. Asked after every application and every tick, because a transfer postpones it.
 */
export function leaveJointIfDue(state: CoreState): void {
  const { leadership } = state;
  if (leadership === undefined || !isJoint(state.config)) return;
  if (!acceptsProposals(state, leadership) || state.log.applied < leadership.pendingConfigIndex) return;
  appendConfig(state, leadership, leaveJoint(state.config));
}

/** A `config` entry was applied: from now on this replica acts by it. */
export function applyConfig(state: CoreState, entry: Entry): void {
  const config = decodeConfig(entry.data);
  assert(config !== undefined, 'config entry {} holds no sound configuration', entry.index);
  assert(isSuccessor(state.config, config), 'config entry {} does not follow the one before it', entry.index);
  assert(
    state.role === 'follower' || state.role === 'leader',
    'a {} counts votes by a configuration that is being replaced',
    state.role,
  );
  const isComplete = isJoint(state.config) && !isJoint(config);
  state.config = config;
  if (state.leadership !== undefined) leadUnderNewConfig(state, state.leadership, isComplete);
}

/** The highest epoch of the configuration in effect and of those in the log, applied or not. */
export function newestEpoch({ config, log }: CoreState): number {
  let newest = config.epoch;
  for (const entry of log.configEntries(log.applied + 1, log.lastIndex)) {
    newest = Math.max(newest, decodeConfig(entry.data)?.epoch ?? 0);
  }
  return newest;
}

/**
 * A replica that was removed has forgotten what it helped to decide. Once it has come back, it takes no part in
 * elections before its log holds all of that again: up to a configuration newer than the removal (raft/README.md).
 */
export function hasForgotten(state: CoreState): boolean {
  return state.removedAt > 0 && newestEpoch(state) <= state.removedAt;
}

/** A change is under way, or may be, or a quorum may not know yet that it is complete. Only a leader knows the last. */
export function isChanging(state: CoreState): boolean {
  const { leadership, log, config } = state;
  return isJoint(config) || (leadership !== undefined && log.applied < leadership.pendingConfigIndex);
}

function leadUnderNewConfig(state: CoreState, leadership: Leadership, isComplete: boolean): void {
  const members = membersOf(state.config);
  for (const [peer, progress] of leadership.progress) {
    if (members.includes(peer)) continue;
    // A last word: who learns that it was removed stops asking for votes.
    if (peer !== state.id) sendHeartbeat(state, peer, progress);
    leadership.progress.delete(peer);
  }
  const { lastIndex } = state.log;
  for (const member of members) {
    if (leadership.progress.has(member)) continue;
    // As if just heard from: a node that is only starting must not look like one that is cut off.
    leadership.addProgress(member, { next: lastIndex + 1, since: lastIndex }).heard();
  }
  if (!state.config.voters.includes(leadership.transferTarget)) endTransfer(leadership);
  // Once this is committed, a quorum of the new voters has it on disk that the change is, and needs the others no more.
  if (isComplete) appendNoop(state, leadership);
  // Fewer voters may be enough for what more were not.
  advanceCommit(state, leadership);
  broadcastAppend(state, leadership);
}

/**
 * A leader that is no voter any more leads, without counting itself, until the others need it no more; then it asks
 * the one that has most of its log to take over. Stepping down earlier could leave them asking for its vote, which
 * it must refuse them if its log is longer, while it may not campaign itself (etcd-io/etcd#12359).
 */
export function stepDownIfRemoved(state: CoreState): void {
  const { leadership } = state;
  if (leadership === undefined || state.isVoter() || isChanging(state)) return;
  const [successor] = successors(state, leadership);
  if (successor !== undefined)
    state.send({ type: 'timeoutNow', from: state.id, to: successor, term: state.term });
  state.becomeFollower(state.term, NO_NODE);
}
