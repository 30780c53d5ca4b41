/**
 * One replica of one Raft group: messages in, messages and things to write out. Pure: no I/O, clock, timer,
 * promise or randomness of its own. The caller owes it, in this order, over and over:
 *
 *   step() / tick() / propose()      whatever happened
 *   takeMessages()                   send these now
 *   ready()  -> write and sync it -> advance(ready), then send ready.afterSync
 *   applicable() -> apply -> appliedTo()
 */
import { CoreState, type RaftOptions, type RandomBelow, type Role } from './core-state.ts';
import { campaign, mayCampaign, tickElection } from './election.ts';
import { needsSnapshot } from './follower.ts';
import {
  acceptsProposals,
  peerUnreachable,
  propose,
  snapshotDone,
  successors,
  tickLeader,
  transferLeadership,
} from './leader.ts';
import { LOG_START, RaftLog } from './log.ts';
import { configOfSnapshot, type MembershipChange, type MembershipRefusal } from './membership.ts';
import { advanceReads, requestRead } from './read-index.ts';
import { nextWrite, writeDone, type Ready } from './ready.ts';
import {
  applyConfig,
  isChanging,
  leaveJointIfDue,
  newestEpoch,
  proposeChange,
  stepDownIfRemoved,
} from './reconfigure.ts';
import { statusOf, type RaftStatus } from './status.ts';
import { CoreRest } from './rest.ts';
import { step } from './step.ts';
import {
  NO_NODE,
  type Entry,
  type GroupClock,
  type GroupConfig,
  type LogPosition,
  type Message,
  type NodeId,
  type SnapshotFate,
  type SnapshotMeta,
  type StoredGroup,
} from './types.ts';
import type { Willingness } from './willingness.ts';

export interface RaftInit {
  readonly id: NodeId;
  /** Those the group began with, however it changed since; none on a node that joined later. */
  readonly voters: readonly NodeId[];
  /** What the disk held at start; undefined for a group that never wrote anything. */
  readonly stored: StoredGroup | undefined;
  readonly clock: GroupClock;
  readonly random: RandomBelow;
  readonly options: RaftOptions;
  /** This replica should lead when it can: it is the first to campaign. May change, see `prefer`. */
  readonly isPreferred: boolean;
}

export class RaftCore {
  readonly #state: CoreState;
  readonly rest: CoreRest;

  constructor(init: RaftInit) {
    const { stored } = init;
    const snapshotIndex = stored?.snapshot?.index ?? 0;
    const commit = Math.max(stored?.hardState.commit ?? 0, snapshotIndex);
    const log = new RaftLog(stored?.base ?? LOG_START, stored?.entries ?? [], commit, snapshotIndex);
    const removedAt = stored?.removedAt ?? 0;
    this.#state = new CoreState({
      id: init.id,
      // A replica that was removed and came back learns from the others who they are, like any that joins.
      voters: removedAt > 0 ? [] : init.voters,
      removedAt,
      hardState: stored?.hardState ?? { term: 0, vote: NO_NODE, commit: 0 },
      log,
      clock: init.clock,
      random: init.random,
      options: init.options,
      isPreferred: init.isPreferred,
    });
    this.rest = new CoreRest(this.#state);
    // As of the snapshot: what the log changed since is applied again.
    if (stored?.snapshot !== undefined) this.#state.config = configOfSnapshot(stored.snapshot);
  }

  get id(): NodeId {
    return this.#state.id;
  }
  get term(): number {
    return this.#state.term;
  }
  get role(): Role {
    return this.#state.role;
  }
  get leader(): NodeId {
    return this.#state.leader;
  }
  get voters(): readonly NodeId[] {
    return this.#state.config.voters;
  }
  /** The configuration in effect: as of the last entry applied. */
  get config(): GroupConfig {
    return this.#state.config;
  }
  get lastPosition(): LogPosition {
    return this.#state.log.last;
  }
  get applied(): number {
    return this.#state.log.applied;
  }
  /** The highest epoch of the configuration in effect and of those in the log, applied or not. */
  get newestEpoch(): number {
    return newestEpoch(this.#state);
  }
  /** The position before the first entry still in memory. */
  get logBase(): LogPosition {
    return this.#state.log.base;
  }

  status(): RaftStatus {
    return statusOf(this.#state);
  }

  /** Time passed: one tick. */
  tick(): void {
    const state = this.#state;
    if (state.leadership === undefined) tickElection(state);
    else tickLeader(state, state.leadership);
    leaveJointIfDue(state);
  }

  /** There is nothing to write, to apply or to tell a reader, and nothing waits for the disk. Messages may be there to send. */
  get isAtRest(): boolean {
    const { term, vote, written, log, afterSync, confirmedReads, pendingInstall } = this.#state;
    return (
      log.stable === log.lastIndex &&
      log.applied >= log.committed &&
      term === written.term &&
      vote === written.vote &&
      afterSync.length === 0 &&
      confirmedReads.length === 0 &&
      pendingInstall === undefined
    );
  }

  /** A message for this replica arrived. */
  step(message: Message): void {
    step(this.#state, message);
  }

  /**
   * Appends a command to the leader's log. Returns its entry, or undefined if this node does not lead, is unfit to,
   * hands its leadership over, or has too much uncommitted: then nothing was appended. The core keeps `data`; the caller
   * must not change it.
   */
  propose(data: Uint8Array): Entry | undefined {
    const state = this.#state;
    return state.leadership && propose(state, state.leadership, data);
  }

  /** On a leader: false while leadership is being handed over, or given up. */
  get acceptsProposals(): boolean {
    const state = this.#state;
    return state.leadership !== undefined && acceptsProposals(state, state.leadership);
  }

  /**
   * Begins to change the members of the group. Returns the entry it begins with, or why it was refused. This leader
   * or its successors complete it; until then `isChanging`. `epoch` is the version of the placement that asks.
   */
  changeMembership(change: MembershipChange, epoch: number): Entry | MembershipRefusal {
    return proposeChange(this.#state, change, epoch);
  }

  /** Whether a leader would refuse a change because of the one before. */
  get isChanging(): boolean {
    return isChanging(this.#state);
  }

  /**
   * Asks for an index to read at: whoever has applied that much sees everything that was answered before now. Returns
   * a ticket, or undefined if this node does not lead. The answer comes out of `takeReads`, or never if this node
   * leads no more: then its term has changed, or its role.
   */
  requestRead(): number | undefined {
    return requestRead(this.#state);
  }

  takeReads(): { readonly ticket: number; readonly index: number }[] {
    const { confirmedReads } = this.#state;
    return confirmedReads.length > 0 ? confirmedReads.splice(0) : [];
  }

  /**
   * Hands leadership to `to` as soon as its log is complete. Nothing can be proposed meanwhile; it is given up after
   * an election timeout. Returns false, doing nothing, unless this node leads and `to` is another voter.
   */
  transferLeadership(to: NodeId): boolean {
    const state = this.#state;
    if (state.leadership === undefined || to === this.id || !this.voters.includes(to)) return false;
    transferLeadership(state, state.leadership, to);
    return true;
  }

  get isTransferring(): boolean {
    const { leadership } = this.#state;
    return leadership !== undefined && leadership.transferTarget !== NO_NODE;
  }

  /** A leader's view: `peer` is a member, and was heard from for as long as check-quorum looks back. */
  isReachable(peer: NodeId): boolean {
    return this.#state.leadership?.isReachable(peer) === true;
  }

  /** A leader's view: `peer` would take over, is sent everything, and lacks at most `entries` of the log. */
  isReadyToLead(peer: NodeId, entries: number): boolean {
    const { leadership, log } = this.#state;
    const progress = leadership?.progress.get(peer);
    if (progress?.state !== 'replicate' || !progress.mayTakeOver) return false;
    return progress.match + entries >= log.lastIndex;
  }

  /** A leader's view: voters that would take over and could, those with most of the log first. */
  get successors(): NodeId[] {
    const state = this.#state;
    return state.leadership === undefined ? [] : successors(state, state.leadership);
  }

  /** Whether this replica should lead when it can. */
  prefer(isPreferred: boolean): void {
    this.#state.isPreferred = isPreferred;
  }

  /** Starts an election now. Does nothing on a leader, a non-voter or a node that is not up to it. */
  campaign(): void {
    if (mayCampaign(this.#state)) campaign(this.#state, 'preVote');
  }

  /**
   * The leader's process is gone, for all we can tell (its connection broke): stop protecting it, and campaign
   * after `delayTicks` unless it speaks again. Safe if wrong: pre-vote asks the others first.
   */
  forgetLeader(delayTicks: number): void {
    const state = this.#state;
    if (state.role !== 'follower' || state.leader === NO_NODE) return;
    state.leader = NO_NODE;
    state.electionElapsedTicks = 0;
    const patience = state.willingness === 'reluctant' ? state.options.electionTicks : 0;
    state.electionTimeoutTicks = Math.max(1, delayTicks) + patience;
  }

  /** Whether this node should lead. One that is unfit campaigns no more, and leads for an election timeout at most. */
  setWillingness(willingness: Willingness): void {
    const state = this.#state;
    state.willingness = willingness;
    if (willingness === 'unfit' && state.role !== 'leader') this.stepDown();
  }

  /** Leads and campaigns no more, whoever takes over. */
  stepDown(): void {
    const state = this.#state;
    if (state.role !== 'follower') state.becomeFollower(state.term, NO_NODE);
  }

  peerUnreachable(peer: NodeId): void {
    const { leadership } = this.#state;
    if (leadership !== undefined) peerUnreachable(leadership, peer);
  }

  snapshotDone(peer: NodeId, fate: SnapshotFate): void {
    const { leadership } = this.#state;
    if (leadership !== undefined) snapshotDone(leadership, peer, fate);
  }

  /** Does this replica lack anything that the snapshot holds? */
  needsSnapshot(meta: SnapshotMeta): boolean {
    return needsSnapshot(this.#state, meta);
  }

  /** A snapshot has replaced the log in memory, and is not installed on disk yet. */
  get isInstalling(): boolean {
    return this.#state.pendingInstall !== undefined;
  }

  /** Messages that may leave at once. */
  takeMessages(): Message[] {
    return this.#state.outgoing.length > 0 ? this.#state.outgoing.splice(0) : [];
  }

  /**
   * What is to be written next, or undefined if there is neither anything to write nor anything that waits. One
   * at a time: the next call comes after `advance`.
   *
   * @param costMax entries are taken until they cost this much to write (see `writeCost`), none if 0. Then only a part
   * may be in it; term and vote always are, and the commit index as far as its entries are.
   */
  ready(costMax = Number.POSITIVE_INFINITY): Ready | undefined {
    return nextWrite(this.#state, costMax);
  }

  /** Entries wait for the disk. */
  get hasUnstable(): boolean {
    return this.#state.log.stable < this.#state.log.lastIndex;
  }

  /** `ready` is on disk. Counts this node's own vote and acknowledgement; the caller sends the other messages. */
  advance(ready: Ready): void {
    writeDone(this.#state, ready);
  }

  /** The next committed entries to apply, at most about `bytesMax` of them. */
  applicable(bytesMax: number): Entry[] {
    return this.#state.pendingInstall === undefined ? this.#state.log.applicable(bytesMax) : [];
  }

  get hasApplicable(): boolean {
    const { log, pendingInstall } = this.#state;
    return pendingInstall === undefined && log.applied < Math.min(log.committed, log.stable);
  }

  /** The application has applied everything up to `index`. Here configurations take effect. */
  appliedTo(index: number): void {
    const { log } = this.#state;
    const first = log.applied + 1;
    log.appliedTo(index);
    for (const entry of log.configEntries(first, index)) applyConfig(this.#state, entry);
    leaveJointIfDue(this.#state);
    stepDownIfRemoved(this.#state);
    advanceReads(this.#state);
  }

  /** The position up to which the log may be compacted if about `keepBytes` before `index` are to stay. */
  compactionPoint(index: number, keepBytes: number): LogPosition {
    return this.#state.log.positionBefore(index, keepBytes);
  }

  /** Forgets entries up to `index`, which a stored snapshot covers. */
  compact(index: number): void {
    this.#state.log.compact(index);
  }
}
