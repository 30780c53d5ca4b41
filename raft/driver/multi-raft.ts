/**
 * The groups of a node and the requests to them. The turn loop turns the wishes of their cores into messages, one disk
 * write and applied entries, through interfaces declared here. Owns no timer, thread or socket.
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

/**
 * The Raft driver of one node. Methods that change a group, or wait for something in it, throw `InvariantError` if this
 * node does not hold the group, and so does `newestEpoch`. The others then return false or undefined, or do nothing.
 */
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

  /** Starts the turns. Call it only after all groups on disk were added, because a turn may write. */
  start(): void {
    this.#turns.start();
  }

  /**
   * Adds a group with its state on disk, and applies what is known to be committed. A group that was removed from this
   * node starts anew, in its tombstone's term, under a placement above the one that removed it.
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
   * Removes a group from this node: it neither receives nor sends anything from now on, and its application is not
   * called again. Requests that wait for it are answered as lost. Must not be called from within a call to its own
   * application. See "Removing a replica" in docs/internals/raft.md.
   *
   * @param placement the version of the cluster's placement that moved the group away, above every one it was offered
   * under
   * @param done called once, with the tombstone, when nothing else is left; never if this driver stops before
   */
  removeGroup(group: GroupId, placement: number, done: (tombstone: StoredGroup) => void): void {
    const target = this.#held(group);
    this.#groups.delete(group);
    this.#turns.remove(target, placement, done);
  }

  /**
   * Records that this node offers to hold the group under this version of the cluster's placement, which never
   * decreases. While it is the newest, no older version removes the replica.
   *
   * @param done called once it is on disk; never if this driver stops or the group is removed before
   */
  offerGroup(group: GroupId, placement: number, done: () => void): void {
    const target = this.#held(group);
    target.offers.push({ placement, done });
    this.#turns.activate(target);
  }

  /** The highest epoch of the configuration in effect and of those in the log, applied or not. */
  newestEpoch(group: GroupId): number {
    return this.#held(group).core.newestEpoch;
  }

  /**
   * Whether this node leads the group and has recently heard from `node`, a member. A member that was just added counts
   * as heard.
   */
  isReachable(group: GroupId, node: NodeId): boolean {
    return this.#groups.get(group)?.core.isReachable(node) === true;
  }

  /** The status of the group on this node; undefined if this node does not hold it. */
  status(group: GroupId): RaftStatus | undefined {
    return this.#groups.get(group)?.core.status();
  }

  /** Whether the group is idle, so that beats between the nodes replace its heartbeats. */
  isResting(group: GroupId): boolean {
    return this.#groups.get(group)?.rest !== undefined;
  }

  /** The configuration in effect on this node; undefined if it does not hold the group. Cheap. */
  configOf(group: GroupId): GroupConfig | undefined {
    return this.#groups.get(group)?.core.config;
  }

  /**
   * Whether a change of members is under way or may be: one was requested here, the configuration in effect is joint,
   * or this node leads and the log of its predecessor may contain a change.
   */
  isChanging(group: GroupId): boolean {
    const target = this.#groups.get(group);
    if (target === undefined) return false;
    return target.core.isChanging || this.#turns.isAsked(target);
  }

  /** Whether this node leads the group, as far as it knows. */
  leads(group: GroupId): boolean {
    return this.#groups.get(group)?.core.role === 'leader';
  }

  /** Makes `node` the preferred leader of `group`. */
  preferLeader(group: GroupId, node: NodeId): void {
    const target = this.#groups.get(group);
    if (target === undefined) return;
    // The pause after a failed transfer is only for the node that failed.
    if (node !== target.preferredLeader) target.balanceAtTick = 0;
    target.preferredLeader = node;
    target.core.prefer(node === this.#init.id);
  }

  /** Messages from a peer. Drops those for groups that this node does not hold, and all messages before `start`. */
  receive(messages: readonly PeerMessage[]): void {
    this.#turns.receive(messages);
  }

  /** The group's application has a proposal: fetch it in the next turn. */
  requestProposal(group: GroupId): void {
    this.#turns.requestProposal(this.#held(group));
  }

  /**
   * Changes the members of a group that this node leads, in the next turn. A node joins as a learner, catches up and is
   * promoted; to replace a node, promote one and remove the other in one change. Do not stop a removed node before the
   * change is complete: its vote may be needed.
   *
   * @param epoch the version of the cluster's placement that asks: an integer >= 0. One lower than that of the
   * configuration in effect is refused. One version may ask for several changes, one after the other.
   * @param done called once with the result; never if this driver stops before
   */
  changeMembership(group: GroupId, change: MembershipChange, epoch: number, done: MembershipDone): void {
    this.#turns.ask({ group: this.#held(group), change, epoch, done });
  }

  /**
   * Requests the index at which a linearizable read may be served from this node's state, and waits until that is
   * applied here. Only a leader answers with an index. Any other node, or one that loses the leadership before a quorum
   * has confirmed it, answers undefined. All reads between two turns share one leadership check.
   *
   * @param done called once; never if this driver stops before
   */
  readIndex(group: GroupId, done: ReadDone): void {
    const target = this.#held(group);
    target.reads.ask(done);
    this.#turns.activate(target);
  }

  /**
   * Requests a snapshot of this node's own state with everything that is committed now, as a leader confirms it: the
   * stored one, or a new one. Its chunks can be read from the store until a newer snapshot replaces it, which is
   * delayed until `releaseSnapshot`.
   *
   * @param done called once, with undefined if this node does not lead (ask another); never if this driver stops before
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

  /** A caller of `currentSnapshot` has finished reading. */
  releaseSnapshot(group: GroupId): void {
    const target = this.#groups.get(group);
    if (target !== undefined) target.snapshots.readers = Math.max(0, target.snapshots.readers - 1);
  }

  /** Counts a tick in every group that does not rest. */
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
   * Heartbeats need no disk, so a leader whose disk does not answer could stay leader forever and commit nothing that
   * needs it (etcd-io/etcd#15247). It steps down, and campaigns again when the disk answers.
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

  /**
   * The connection from `peer` broke. The groups that it led look for a new leader at once, one replica after the
   * other.
   */
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
   * Hands every group that this node leads to another voter that is willing, was recently heard from and has the
   * longest log. Call it again until `leaderships` is 0: each attempt ends, and the next tries another voter.
   */
  handOver(): void {
    if (!this.#turns.isRunning) return;
    for (const group of this.#groups.values()) {
      handOver(group);
      this.#turns.activate(group);
    }
  }

  /**
   * Sets or clears a reason why others should lead. While it lasts, this node hands over its leaderships and its peers
   * hand nothing to it. A reluctant node keeps what nobody takes, so call `handOver` again while it lasts; an unfit
   * node gives it up. See `Hindrance`.
   */
  avoidLeading(reason: Exclude<Hindrance, 'diskStalled'>, lasts: boolean): void {
    this.#hinder(reason, lasts);
    if (lasts) this.handOver();
  }

  /** Whether no `Hindrance` keeps this node from leading. */
  get isWilling(): boolean {
    return this.#hindrances.willingness === 'willing';
  }

  /** The number of groups that this node leads. */
  get leaderships(): number {
    if (!this.#turns.isRunning) return 0;
    let count = 0;
    for (const { core } of this.#groups.values()) if (core.role === 'leader') count += 1;
    return count;
  }

  /** Whether another voter could and would take over at least one group that this node leads. */
  get canHandOver(): boolean {
    for (const { core } of this.#groups.values()) {
      if (core.role === 'leader' && core.successors.length > 0) return true;
    }
    return false;
  }

  /** Stops the driver: nothing is sent, written or applied after this. */
  stop(): void {
    this.#turns.stop();
  }
}
