/**
 * One replica of one Raft group, as a pure state machine: it does no I/O and has no clock, timer, promise or
 * randomness of its own. The caller repeats these steps, in this order:
 *
 *   step() / tick() / propose()      for each event
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

/** What a replica is created with. */
export interface RaftInit {
  readonly id: NodeId;
  /** The voters that the group was created with. Empty on a node that joins later. */
  readonly voters: readonly NodeId[];
  /** What was on disk at start; undefined for a group that never wrote anything. */
  readonly stored: StoredGroup | undefined;
  readonly clock: GroupClock;
  readonly random: RandomBelow;
  readonly options: RaftOptions;
  /** Whether this replica is the preferred leader at start. `prefer` changes it. */
  readonly isPreferred: boolean;
}

/** One replica of one group. The caller repeats the steps at the top of this file. */
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
      // A replica that was removed and came back learns the voters from the group, like one that joins.
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
    // The configuration of the snapshot. Later `config` entries of the log are applied again.
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
  /** The configuration in effect, as of the last entry applied. */
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
  get logBase(): LogPosition {
    return this.#state.log.base;
  }

  status(): RaftStatus {
    return statusOf(this.#state);
  }

  tick(): void {
    const state = this.#state;
    if (state.leadership === undefined) tickElection(state);
    else tickLeader(state, state.leadership);
    leaveJointIfDue(state);
  }

  /**
   * True if there is nothing to write, apply or answer, and no message waits for the disk. There may be messages to
   * send.
   */
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

  step(message: Message): void {
    step(this.#state, message);
  }

  /**
   * Appends a command to the leader's log and returns its entry. Returns undefined, and appends nothing, if this node
   * does not lead, is unfit to, is handing over, or has too many uncommitted bytes. The caller must not change `data`
   * afterwards.
   */
  propose(data: Uint8Array): Entry | undefined {
    const state = this.#state;
    return state.leadership && propose(state, state.leadership, data);
  }

  /** True on a leader, except while it hands its leadership over or is unfit to lead. */
  get acceptsProposals(): boolean {
    const state = this.#state;
    return state.leadership !== undefined && acceptsProposals(state, state.leadership);
  }

  /**
   * Begins to change the members of the group. Returns the first entry of the change, or the reason for a refusal. This
   * leader or its successors complete the change. `epoch` is the version of the placement that asks for it.
   */
  changeMembership(change: MembershipChange, epoch: number): Entry | MembershipRefusal {
    return proposeChange(this.#state, change, epoch);
  }

  /** Whether the previous change is not complete, so that a leader would refuse another. */
  get isChanging(): boolean {
    return isChanging(this.#state);
  }

  /**
   * Asks for a read index: a replica that has applied the log up to it has every write acknowledged before this call.
   * Returns a ticket, or undefined if this node does not lead. `takeReads` returns it with its index, or never if this
   * node loses the leadership.
   */
  requestRead(): number | undefined {
    return requestRead(this.#state);
  }

  /** Removes and returns the reads that were confirmed since the last call. */
  takeReads(): { readonly ticket: number; readonly index: number }[] {
    const { confirmedReads } = this.#state;
    return confirmedReads.length > 0 ? confirmedReads.splice(0) : [];
  }

  /**
   * Hands the leadership to `to` as soon as the log of `to` is complete. Accepts no proposals meanwhile, and gives up
   * after an election timeout. Returns false, and does nothing, unless this node leads and `to` is another voter.
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

  /** On a leader: whether `peer` is a member that answered in this or the last round of check-quorum. */
  isReachable(peer: NodeId): boolean {
    return this.#state.leadership?.isReachable(peer) === true;
  }

  /** On a leader: whether `peer` is willing to lead and lacks at most `entries` entries of the log. */
  isReadyToLead(peer: NodeId, entries: number): boolean {
    const { leadership, log } = this.#state;
    const progress = leadership?.progress.get(peer);
    if (progress?.state !== 'replicate' || !progress.mayTakeOver) return false;
    return progress.match + entries >= log.lastIndex;
  }

  /** On a leader: the voters that could and would take over, the one with the longest log first. */
  get successors(): NodeId[] {
    const state = this.#state;
    return state.leadership === undefined ? [] : successors(state, state.leadership);
  }

  prefer(isPreferred: boolean): void {
    this.#state.isPreferred = isPreferred;
  }

  /** Starts an election now, if this node may (`mayCampaign`). */
  campaign(): void {
    if (mayCampaign(this.#state)) campaign(this.#state, 'preVote');
  }

  /**
   * The connection from the leader broke: stop protecting it, and campaign after `delayTicks` unless it sends a message
   * first. A false alarm is harmless, because pre-vote asks the others first.
   */
  forgetLeader(delayTicks: number): void {
    const state = this.#state;
    if (state.role !== 'follower' || state.leader === NO_NODE) return;
    state.leader = NO_NODE;
    state.electionElapsedTicks = 0;
    const patience = state.willingness === 'reluctant' ? state.options.electionTicks : 0;
    state.electionTimeoutTicks = Math.max(1, delayTicks) + patience;
  }

  /** An unfit node does not campaign, and gives up a leadership after at most one election timeout. */
  setWillingness(willingness: Willingness): void {
    const state = this.#state;
    state.willingness = willingness;
    if (willingness === 'unfit' && state.role !== 'leader') this.stepDown();
  }

  /** Becomes a follower without a leader, if it leads or campaigns. */
  stepDown(): void {
    const state = this.#state;
    if (state.role !== 'follower') state.becomeFollower(state.term, NO_NODE);
  }

  /** The connection to `peer` broke, so appends may be lost. */
  peerUnreachable(peer: NodeId): void {
    const { leadership } = this.#state;
    if (leadership !== undefined) peerUnreachable(leadership, peer);
  }

  /** The driver has stopped sending a snapshot to `peer`. */
  snapshotDone(peer: NodeId, fate: SnapshotFate): void {
    const { leadership } = this.#state;
    if (leadership !== undefined) snapshotDone(leadership, peer, fate);
  }

  /** Whether the snapshot contains anything that this replica lacks. */
  needsSnapshot(meta: SnapshotMeta): boolean {
    return needsSnapshot(this.#state, meta);
  }

  /** Whether a snapshot has replaced the log in memory and is not installed on disk yet. */
  get isInstalling(): boolean {
    return this.#state.pendingInstall !== undefined;
  }

  takeMessages(): Message[] {
    return this.#state.outgoing.length > 0 ? this.#state.outgoing.splice(0) : [];
  }

  /**
   * What to write next; undefined if there is nothing to write and no message waits for the disk. Call it again only
   * after `advance`. Takes entries until their `writeCost` reaches `costMax`; none if that is 0. The term and the vote
   * are always included, and the commit index as far as the included entries reach.
   */
  ready(costMax = Number.POSITIVE_INFINITY): Ready | undefined {
    return nextWrite(this.#state, costMax);
  }

  /** Whether some entries in memory are not on disk yet. */
  get hasUnstable(): boolean {
    return this.#state.log.stable < this.#state.log.lastIndex;
  }

  /**
   * `ready` is on disk now. Counts this node's own vote and acknowledgement; the caller sends the other messages.
   */
  advance(ready: Ready): void {
    writeDone(this.#state, ready);
  }

  /** The next committed entries to apply: about `bytesMax` bytes, but at least one entry. */
  applicable(bytesMax: number): Entry[] {
    return this.#state.pendingInstall === undefined ? this.#state.log.applicable(bytesMax) : [];
  }

  get hasApplicable(): boolean {
    const { log, pendingInstall } = this.#state;
    return pendingInstall === undefined && log.applied < Math.min(log.committed, log.stable);
  }

  /** The state machine has applied every entry up to `index`. Configurations take effect here. */
  appliedTo(index: number): void {
    const { log } = this.#state;
    const first = log.applied + 1;
    log.appliedTo(index);
    for (const entry of log.configEntries(first, index)) applyConfig(this.#state, entry);
    leaveJointIfDue(this.#state);
    stepDownIfRemoved(this.#state);
    advanceReads(this.#state);
  }

  /** The position to compact the log to so that about `keepBytes` of entries before `index` stay. */
  compactionPoint(index: number, keepBytes: number): LogPosition {
    return this.#state.log.positionBefore(index, keepBytes);
  }

  /** Drops the entries up to `index`, which a stored snapshot must cover. */
  compact(index: number): void {
    this.#state.log.compact(index);
  }
}
