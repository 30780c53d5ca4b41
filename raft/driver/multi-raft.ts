/**
 * Runs all groups of a node: turns what their cores want into messages, one disk write and applied entries,
 * through interfaces declared here. It owns no timer, thread or socket.
 *
 * One turn: step what arrived -> propose what waits -> send -> apply -> write everything in one synced batch.
 * While that write is in flight the next turn fills up; that is the group commit, and it adapts to the load by
 * itself. Messages are stepped during the write too; only proposals wait for the turn, to travel in one entry.
 */
import { assert } from '../assert.ts';
import { applyCommitted, maybeTakeSnapshot } from './apply.ts';
import { closeGroup, type Group, type GroupInit, openGroup, tellStatus } from './group.ts';
import type { MembershipDone, ReadDone } from './group-application.ts';
import { GroupCommit } from './group-commit.ts';
import { balance, handOver, replaceLeader } from './leaderships.ts';
import type { MembershipChange } from '../membership.ts';
import type { MultiRaftInit } from './multi-raft-options.ts';
import { Outbox } from './outbox.ts';
import type { PeerMessage } from './peer-message.ts';
import { PendingChanges } from './pending-changes.ts';
import { SnapshotTraffic } from './snapshot-traffic.ts';
import type { RaftStatus } from '../status.ts';
import type { GroupConfig, GroupId, NodeId, StoredGroup } from '../types.ts';
import { type Hindrance, Hindrances } from '../willingness.ts';

export type * from './group-application.ts';
export { MULTI_RAFT_DEFAULTS, type MultiRaftOptions } from './multi-raft-options.ts';

export class MultiRaft {
  readonly #init: MultiRaftInit;
  readonly #groups = new Map<GroupId, Group>();
  readonly #inbox: PeerMessage[] = [];
  /** Groups whose core may have something to send, write or apply. */
  readonly #active = new Set<Group>();
  readonly #wantsProposal = new Set<Group>();
  readonly #changes = new PendingChanges();
  readonly #outbox = new Outbox();
  readonly #traffic: SnapshotTraffic;
  readonly #disk: GroupCommit;
  #scheduled = false;
  #started = false;
  #stopped = false;
  readonly #hindrances = new Hindrances();
  #ticks = 0;

  constructor(init: MultiRaftInit) {
    this.#init = init;
    this.#disk = new GroupCommit({
      store: init.store,
      options: init.options,
      send: (group, message) => this.#outbox.post(message.to, { kind: 'message', group: group.id, message }),
      activate: (group) => this.#activate(group),
      staged: (group, incoming) => this.#traffic.staged(group, incoming),
      installed: (group) => this.#traffic.installed(group),
      stalled: (isStalled) => this.#stalled(isStalled),
      written: () => this.#turn(),
      failed: (error) => this.#fail(error),
    });
    this.#traffic = new SnapshotTraffic({
      id: init.id,
      store: init.store,
      options: init.options.streams,
      groupOf: (id) => this.#groups.get(id),
      post: (to, message) => this.#outbox.post(to, message),
      activate: (group) => this.#activate(group),
      schedule: () => this.#schedule(),
      refused: (group, meta, error) => init.snapshotRefused?.(group, meta, error),
      failed: (error) => this.#fail(error),
    });
  }

  /** From now on turns run. Only when every group that is on the disk was added, for a turn may write. */
  start(): void {
    assert(!this.#started, 'a driver is started once');
    this.#started = true;
    this.#schedule();
  }

  /**
   * Adds a group with what the disk held for it, and applies what is known to be committed. One that was removed from
   * this node begins anew, in its tombstone's term, under a placement above the one that removed it.
   */
  addGroup(init: GroupInit): void {
    assert(
      !this.#groups.has(init.group) && !this.#disk.isRemoving(init.group),
      `group ${init.group} was added twice, or while it is being removed`,
    );
    const { id, random, options } = this.#init;
    const group = openGroup(init, { id, random, options: options.raft });
    this.#groups.set(init.group, group);
    group.core.setWillingness(this.#hindrances.willingness);
    group.app.configChanged?.(group.core.config);
    this.#activate(group);
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
    this.#active.delete(target);
    this.#wantsProposal.delete(target);
    this.#outbox.forget(group);
    this.#traffic.forget(target);
    this.#disk.remove(target, placement, done);
    this.#changes.forget(target);
    closeGroup(target);
    this.#schedule();
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
    this.#activate(target);
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
    return target.core.isChanging || this.#changes.has(target);
  }

  /** Does this node lead the group, as far as it knows? */
  leads(group: GroupId): boolean {
    return this.#groups.get(group)?.core.role === 'leader';
  }

  /** From now on, `node` is the voter that should lead `group` when it can. */
  preferLeader(group: GroupId, node: NodeId): void {
    const target = this.#groups.get(group);
    if (target === undefined) return;
    target.preferredLeader = node;
    target.core.prefer(node === this.#init.id);
  }

  /** Messages from a peer. Those for groups this node does not hold are dropped, and all before `start`. */
  receive(messages: readonly PeerMessage[]): void {
    if (!this.#started) return;
    for (const message of messages) this.#inbox.push(message);
    this.#schedule();
  }

  /** The group's application has a proposal waiting. */
  requestProposal(group: GroupId): void {
    const target = this.#held(group);
    this.#wantsProposal.add(target);
    this.#schedule();
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
    const target = this.#held(group);
    this.#changes.ask({ group: target, change, epoch, done });
    this.#activate(target);
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
    this.#activate(target);
  }

  /** Time passed: one tick for every group. */
  tick(): void {
    if (this.#stopped || !this.#started) return;
    for (const group of this.#groups.values()) {
      group.core.tick();
      this.#active.add(group);
    }
    if (this.#hindrances.willingness === 'unfit') this.handOver();
    this.#disk.tick();
    this.#ticks += 1;
    const { balanceTicks, raft } = this.#init.options;
    this.#traffic.tick(this.#ticks, raft.heartbeatTicks);
    if (this.#ticks % balanceTicks === 0) balance(this.#groups.values(), this.#ticks, balanceTicks);
    this.#schedule();
  }

  #held(group: GroupId): Group {
    const target = this.#groups.get(group);
    assert(target !== undefined, `group ${group} is not on this node`);
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
    this.#hindrances.set(hindrance, isPresent);
    for (const group of this.#groups.values()) {
      group.core.setWillingness(this.#hindrances.willingness);
      this.#active.add(group);
    }
    this.#schedule();
  }

  /** The connection from `peer` broke. Its groups look for a new leader at once, one replica after the other. */
  peerLost(peer: NodeId): void {
    if (this.#stopped) return;
    this.#traffic.peerLost(peer);
    const { heartbeatTicks } = this.#init.options.raft;
    for (const group of this.#groups.values()) {
      group.core.peerUnreachable(peer);
      if (group.core.leader !== peer) continue;
      replaceLeader(group, peer, heartbeatTicks, this.#init.random);
      this.#activate(group);
    }
  }

  /**
   * Hands every group that this node leads to another voter: one that would take over, was heard from lately and has most
   * of the log. To be asked again until `leaderships` is 0: each attempt ends, and the next goes to another voter.
   */
  handOver(): void {
    if (this.#stopped) return;
    for (const group of this.#groups.values()) {
      handOver(group);
      this.#activate(group);
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

  /** How many groups this node leads. */
  get leaderships(): number {
    if (this.#stopped) return 0;
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
    this.#stopped = true;
    this.#disk.stop();
  }

  #fail(error: unknown): void {
    if (this.#stopped) return;
    this.stop();
    this.#init.fatal(error);
  }

  #activate(group: Group): void {
    this.#active.add(group);
    this.#schedule();
  }

  #schedule(): void {
    if (this.#scheduled || this.#stopped || !this.#started) return;
    this.#scheduled = true;
    this.#init.defer(() => {
      this.#scheduled = false;
      this.#turn();
    });
  }

  #turn(): void {
    if (this.#stopped) return;
    try {
      this.#stepInbox();
      this.#traffic.run();
      this.#changes.begin((group) => this.#active.add(group));
      if (!this.#disk.isWriting) this.#propose();
      // A group stays active until it was offered to the disk, so nothing is forgotten during a write.
      for (const group of this.#active) this.#settle(group);
      if (!this.#disk.isWriting) this.#write();
      this.#outbox.flush(this.#init.send);
    } catch (error) {
      this.#fail(error);
    }
  }

  #stepInbox(): void {
    for (const envelope of this.#inbox.splice(0)) {
      const group = this.#groups.get(envelope.group);
      if (group === undefined) continue;
      switch (envelope.kind) {
        case 'message':
          group.core.step(envelope.message);
          break;
        case 'chunk':
          this.#traffic.receive(group, envelope);
          break;
        case 'chunkAck':
          this.#traffic.acknowledged(envelope);
          break;
      }
      this.#active.add(group);
    }
  }

  #propose(): void {
    for (const group of this.#wantsProposal) {
      if (group.core.role === 'leader' && !group.core.acceptsProposals) continue;
      this.#wantsProposal.delete(group);
      tellStatus(group);
      if (group.core.role !== 'leader') continue;
      const data = group.app.takeProposal();
      if (data === undefined) continue;
      group.app.proposed(group.core.propose(data));
      this.#active.add(group);
    }
  }

  /** Everything that needs no disk: tell, send, apply. */
  #settle(group: Group): void {
    tellStatus(group);
    group.reads.start();
    this.#sendFrom(group);
    const { config, role } = group.core;
    this.#apply(group);
    group.reads.finish();
    if (group.core.config === config && group.core.role === role) return;
    // What a new configuration makes the core do need not wait for another turn.
    tellStatus(group);
    this.#sendFrom(group);
  }

  #sendFrom(group: Group): void {
    for (const message of group.core.takeMessages()) {
      if (message.type === 'snapshot') this.#traffic.send(group, message);
      else this.#outbox.post(message.to, { kind: 'message', group: group.id, message });
    }
  }

  #apply(group: Group): void {
    const { applyBytesMax, snapshotEveryBytes } = this.#init.options;
    // A node that catches up must go on answering clients and heartbeats: all groups share what one turn may take.
    const share = Math.ceil(applyBytesMax / Math.max(1, this.#active.size));
    const last = applyCommitted(group, share);
    // Replacing a snapshot that is being streamed would start the stream over: wait, but not for ever.
    const patience = this.#traffic.isSending(group.id) ? 4 : 1;
    if (last !== undefined) maybeTakeSnapshot(group, last, snapshotEveryBytes, patience);
  }

  #write(): void {
    const groups = [...this.#active];
    this.#active.clear();
    this.#disk.write(groups);
  }
}
