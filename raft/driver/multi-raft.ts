/**
 * All groups of a node: which it holds, what may be asked of them, and which of them it should lead. What their cores
 * want is turned into messages, one disk write and applied entries by the turn loop, through interfaces declared here.
 * It owns no timer, thread or socket.
 */
import { assert } from '../assert.ts';
import { type Group, type GroupInit, openGroup } from './group.ts';
import type { MembershipDone, ReadDone } from './group-application.ts';
import { handOver, maybeBalance, replaceLeader } from './leaderships.ts';
import type { MembershipChange } from '../membership.ts';
import type { MultiRaftInit } from './multi-raft-options.ts';
import type { PeerMessage } from './peer-message.ts';
import type { RaftStatus } from '../status.ts';
import { TurnLoop } from './turn-loop.ts';
import type { GroupConfig, GroupId, NodeId, SnapshotMeta, StoredGroup } from '../types.ts';
import { type Hindrance, Hindrances } from '../willingness.ts';

export type * from './group-application.ts';
export { MULTI_RAFT_DEFAULTS, type MultiRaftOptions } from './multi-raft-options.ts';

export class MultiRaft {
  readonly #init: MultiRaftInit;
  readonly #groups = new Map<GroupId, Group>();
  readonly #turns: TurnLoop;
  readonly #hindrances = new Hindrances();
  #ticks = 0;

  constructor(init: MultiRaftInit) {
    this.#init = init;
    this.#turns = new TurnLoop(init, this.#groups, (isStalled) => this.#stalled(isStalled));
  }

  /** From now on turns run. Only when every group that is on the disk was added, for a turn may write. */
  start(): void {
    this.#turns.start();
  }

  /**
   * Adds a group with what the disk held for it, and applies what is known to be committed. One that was removed from
   * this node begins anew, in its tombstone's term, under a placement above the one that removed it.
   */
  addGroup(init: GroupInit): void {
    assert(
      !this.#groups.has(init.group) && !this.#turns.isRemoving(init.group),
      'group {} was added twice, or while it is being removed',
      init.group,
    );
    const { id, random, options } = this.#init;
    const group = openGroup(init, { id, random, options: options.raft });
    this.#groups.set(init.group, group);
    group.core.setWillingness(this.#hindrances.willingness);
    group.app.configChanged?.(group.core.config);
    this.#turns.activate(group);
  }

  /**
   * Takes a group from this node: from now on it hears and says nothing and its application is told nothing more. What
   * waits for it is answered as lost. Not from within a call to its own application.
   *
   * When a replica may go, raft/README.md says ("Removing a replica").
   *
   * @param placement the version of the cluster's placement that wants it elsewhere, above every one it was offered under
   * @param done told once, with the tombstone, when nothing but that is left; never if this driver stops before
   */
  removeGroup(group: GroupId, placement: number, done: (tombstone: StoredGroup) => void): void {
    const target = this.#held(group);
    this.#groups.delete(group);
    this.#turns.remove(target, placement, done);
  }

  /**
   * Writes down that this node offers to hold the group under this version of the cluster's placement, which is not
   * below any before. While it is the newest, no older version removes the replica.
   *
   * @param done told once it is on disk; never if this driver stops or the group is removed before
   */
  offerGroup(group: GroupId, placement: number, done: () => void): void {
    const target = this.#held(group);
    target.offers.push({ placement, done });
    this.#turns.activate(target);
  }

  /** The highest epoch of the configuration in effect and of any in the log, applied or not. */
  newestEpoch(group: GroupId): number {
    return this.#held(group).core.newestEpoch;
  }

  /** Whether this node leads the group and has lately heard from `node`, which is a member. Just added counts as heard. */
  isReachable(group: GroupId, node: NodeId): boolean {
    return this.#groups.get(group)?.core.isReachable(node) === true;
  }

  status(group: GroupId): RaftStatus | undefined {
    return this.#groups.get(group)?.core.status();
  }

  /** Whether it is idle, and goes on by what its leader's node says of all such groups together. */
  isResting(group: GroupId): boolean {
    return this.#groups.get(group)?.rest !== undefined;
  }

  /** The configuration in effect on this node, or undefined if it does not hold the group. Costs nothing. */
  configOf(group: GroupId): GroupConfig | undefined {
    return this.#groups.get(group)?.core.config;
  }

  /**
   * Whether to wait before asking this node for a change: one that was asked of it is not complete, or the
   * configuration in effect is joint, or, if it leads, what its predecessor left may hold another change.
   */
  isChanging(group: GroupId): boolean {
    const target = this.#groups.get(group);
    if (target === undefined) return false;
    return target.core.isChanging || this.#turns.isAsked(target);
  }

  /** Does this node lead the group, as far as it knows? */
  leads(group: GroupId): boolean {
    return this.#groups.get(group)?.core.role === 'leader';
  }

  /** From now on, `node` is the voter that should lead `group` when it can. */
  preferLeader(group: GroupId, node: NodeId): void {
    const target = this.#groups.get(group);
    if (target === undefined) return;
    // Only the node that was asked to take over is not asked again for a while.
    if (node !== target.preferredLeader) target.balanceAtTick = 0;
    target.preferredLeader = node;
    target.core.prefer(node === this.#init.id);
  }

  /** Messages from a peer. Those for groups this node does not hold are dropped, and all before `start`. */
  receive(messages: readonly PeerMessage[]): void {
    this.#turns.receive(messages);
  }

  /** The group's application has a proposal waiting. */
  requestProposal(group: GroupId): void {
    this.#turns.requestProposal(this.#held(group));
  }

  /**
   * Changes the members of a group that this node leads, soon. A node enters as a learner, catches up, is promoted;
   * to replace one, promote and remove in one change. Stop a node that was removed only when the change is complete:
   * until then its vote may be needed.
   *
   * @param epoch the version of the cluster's placement that asks: a whole number >= 0. Lower than that of the
   * configuration in effect is refused; one version may ask for several changes, one after the other.
   * @param done told once what became of it; never if this driver stops before
   */
  changeMembership(group: GroupId, change: MembershipChange, epoch: number, done: MembershipDone): void {
    this.#turns.ask({ group: this.#held(group), change, epoch, done });
  }

  /**
   * Asks for the index at which a linearizable read may be served from this node's state, once that is applied here.
   * Only a leader answers with an index: any other node, or one that loses the lead before a quorum has confirmed it,
   * answers undefined. All reads that come between two turns share one question to the others.
   *
   * @param done told once; never if this driver stops before
   */
  readIndex(group: GroupId, done: ReadDone): void {
    const target = this.#held(group);
    target.reads.ask(done);
    this.#turns.activate(target);
  }

  /**
   * Asks for a snapshot of this node's own state that holds everything committed before, as a leader confirms it: the stored
   * one, or one that is taken for it. Its chunks are read from the store until that has replaced it, and later than it
   * would otherwise until `releaseSnapshot` is called.
   *
   * @param done told once, undefined by whoever does not lead: ask another; never if this driver stops before
   */
  currentSnapshot(group: GroupId, done: (meta: SnapshotMeta | undefined) => void): void {
    const target = this.#held(group);
    target.reads.ask((index) => {
      if (index === undefined) return done(undefined);
      target.snapshots.want(index, (meta) => {
        if (meta !== undefined) target.snapshots.readers += 1;
        done(meta);
      });
      this.#turns.activate(target);
    });
    this.#turns.activate(target);
  }

  /** Whoever was told a current snapshot of the group reads it no more. */
  releaseSnapshot(group: GroupId): void {
    const target = this.#groups.get(group);
    if (target !== undefined) target.snapshots.readers = Math.max(0, target.snapshots.readers - 1);
  }

  /** Time passed: one tick for every group that does not rest. */
  tick(): void {
    if (this.#turns.isRunning) this.#turns.guard(() => this.#tickGroups());
  }

  #tickGroups(): void {
    for (const group of this.#turns.awake) {
      group.core.tick();
      this.#turns.settle(group);
    }
    if (this.#hindrances.willingness === 'unfit') this.handOver();
    this.#ticks += 1;
    this.#turns.tick(this.#ticks);
    const { balanceTicks } = this.#init.options;
    if (this.#ticks % balanceTicks !== 0) return;
    const handedOver = maybeBalance(this.#groups.values(), this.#ticks, balanceTicks);
    if (handedOver !== undefined) this.#turns.activate(handedOver);
  }

  #held(group: GroupId): Group {
    const target = this.#groups.get(group);
    assert(target !== undefined, 'group {} is not on this node', group);
    return target;
  }

  /**
   * Heartbeats need no disk, so a leader whose disk does not answer could keep its office for ever, and commit nothing
   * that needs it (etcd-io/etcd#15247): it steps down, and campaigns when the disk is back.
   */
  #stalled(isStalled: boolean): void {
    this.#hinder('diskStalled', isStalled);
    if (isStalled) for (const { core } of this.#groups.values()) core.stepDown();
  }

  #hinder(hindrance: Hindrance, isPresent: boolean): void {
    if (!this.#hindrances.set(hindrance, isPresent)) return;
    for (const { core } of this.#groups.values()) core.setWillingness(this.#hindrances.willingness);
    for (const group of this.#groups.values()) this.#turns.activate(group);
  }

  /** The connection from `peer` broke. Its groups look for a new leader at once, one replica after the other. */
  peerLost(peer: NodeId): void {
    if (!this.#turns.isRunning) return;
    this.#turns.peerLost(peer);
    const { heartbeatTicks } = this.#init.options.raft;
    for (const group of this.#groups.values()) {
      group.core.peerUnreachable(peer);
      if (group.core.leader !== peer) continue;
      replaceLeader(group, peer, heartbeatTicks, this.#init.random);
      this.#turns.activate(group);
    }
  }

  /**
   * Hands every group that this node leads to another voter: one that would take over, was heard from lately and has most
   * of the log. To be asked again until `leaderships` is 0: each attempt ends, and the next goes to another voter.
   */
  handOver(): void {
    if (!this.#turns.isRunning) return;
    for (const group of this.#groups.values()) {
      handOver(group);
      this.#turns.activate(group);
    }
  }

  /**
   * Others should lead while this lasts: this node hands over what it leads, and its peers do not hand anything to it.
   * What they do not take, it keeps if it is merely reluctant, to be asked again while it lasts, for it may be elected
   * after all; unfit, it gives it up. See `Hindrance`.
   */
  avoidLeading(reason: Exclude<Hindrance, 'diskStalled'>, lasts: boolean): void {
    this.#hinder(reason, lasts);
    if (lasts) this.handOver();
  }

  /** Nothing keeps this node from leading; see `Hindrance`. */
  get isWilling(): boolean {
    return this.#hindrances.willingness === 'willing';
  }

  /** How many groups this node leads. */
  get leaderships(): number {
    if (!this.#turns.isRunning) return 0;
    let count = 0;
    for (const { core } of this.#groups.values()) if (core.role === 'leader') count += 1;
    return count;
  }

  /** Is there anybody who would take over something that this node leads? */
  get canHandOver(): boolean {
    for (const { core } of this.#groups.values()) {
      if (core.role === 'leader' && core.successors.length > 0) return true;
    }
    return false;
  }

  /** Takes part no more: nothing is sent, written or applied after this. */
  stop(): void {
    this.#turns.stop();
  }
}
