/**
 * The turn of all groups of a node: step what arrived -> propose what waits -> apply -> begin to write everything in one synced batch
 * -> send what need not wait for it. Messages are stepped in every turn; proposals wait for the write in flight and for the round
 * before (rounds.ts), so that all that came meanwhile travels in one entry of each group.
 *
 * It knows which groups have work. Which groups there are, and who should lead them, is not decided here.
 */
import { assert } from '../assert.ts';
import { applyCommitted, takeSnapshotIfDue } from './apply.ts';
import { closeGroup, type Group, isTold, tellStatus } from './group.ts';
import { GroupCommit } from './group-commit.ts';
import type { MultiRaftInit } from './multi-raft-options.ts';
import { Outbox } from '../outbox.ts';
import type { GroupPeerMessage, PeerMessage } from './peer-message.ts';
import { type AskedChange, PendingChanges } from './pending-changes.ts';
import { Rests } from './rests.ts';
import { Rounds } from './rounds.ts';
import { SnapshotTraffic } from './snapshot-traffic.ts';
import type { GroupId, NodeId, StoredGroup } from '../types.ts';

/** Processes of one node differ in a number below this. */
const PROCESS_BOUND = 2 ** 31;

export class TurnLoop {
  readonly #init: MultiRaftInit;
  readonly #groups: ReadonlyMap<GroupId, Group>;
  readonly #inbox: PeerMessage[] = [];
  /** Groups whose core may have something to send, write or apply. */
  readonly #active = new Set<Group>();
  readonly #wantsProposal = new Set<Group>();
  readonly #rounds = new Rounds();
  readonly #changes = new PendingChanges();
  readonly #outbox = new Outbox<PeerMessage>();
  readonly #traffic: SnapshotTraffic;
  readonly #disk: GroupCommit;
  readonly #rests: Rests;
  #isScheduled = false;
  #isStarted = false;
  #isStopped = false;

  /** `stalled` is told when the disk does not answer, and when it does again. */
  constructor(
    init: MultiRaftInit,
    groups: ReadonlyMap<GroupId, Group>,
    stalled: (isStalled: boolean) => void,
  ) {
    this.#init = init;
    this.#groups = groups;
    this.#disk = new GroupCommit({
      store: init.store,
      options: init.options,
      send: (group, message) => this.#outbox.post(message.to, { kind: 'message', group: group.id, message }),
      activate: (group) => this.activate(group),
      staged: (group, incoming) => this.#traffic.staged(group, incoming),
      installed: (group) => this.#traffic.installed(group),
      stalled,
      written: () => this.#schedule(),
      failed: (error) => this.#fail(error),
    });
    this.#rests = new Rests({
      id: init.id,
      options: init.options.raft,
      process: init.random(PROCESS_BOUND),
      monotonicMillis: init.monotonicMillis,
      post: (to, message) => this.#outbox.post(to, message),
      groupOf: (id) => groups.get(id),
      isActive: (group) => this.#active.has(group),
    });
    this.#traffic = new SnapshotTraffic({
      id: init.id,
      store: init.store,
      options: init.options.streams,
      groupOf: (id) => groups.get(id),
      post: (to, message) => this.#outbox.post(to, message),
      activate: (group) => this.activate(group),
      schedule: () => this.#schedule(),
      refused: (group, meta, error) => init.snapshotRefused?.(group, meta, error),
      failed: (error) => this.#fail(error),
    });
  }

  /** The groups that do not rest. */
  get awake(): Iterable<Group> {
    return this.#rests.awake;
  }

  /** Was started, and not stopped. */
  get isRunning(): boolean {
    return this.#isStarted && !this.#isStopped;
  }

  /** From now on turns run. */
  start(): void {
    assert(!this.#isStarted, 'a driver is started once');
    this.#isStarted = true;
    this.#schedule();
  }

  /** Nothing is sent, written or applied after this. */
  stop(): void {
    this.#isStopped = true;
    this.#disk.stop();
  }

  /** The group has work: it is in the next turn. */
  activate(group: Group): void {
    this.#enlist(group);
    this.#schedule();
  }

  /** The group is in this turn, and does not rest. */
  #enlist(group: Group): void {
    this.#rests.busy(group);
    this.#active.add(group);
  }

  /**
   * Time passed for the group, or it heard something. Most groups wait most of the time: at most a message came of it,
   * which needs nothing of what a turn does with a group. Only within `guard`.
   */
  settle(group: Group): void {
    if (this.#active.has(group)) return;
    if (group.core.isAtRest && isTold(group)) this.#sendFrom(group);
    else this.activate(group);
  }

  receive(messages: readonly PeerMessage[]): void {
    if (!this.#isStarted) return;
    for (const message of messages) this.#inbox.push(message);
    this.#schedule();
  }

  /** The group's application is asked for a proposal in the next turn. */
  requestProposal(group: Group): void {
    this.#wantsProposal.add(group);
    this.#schedule();
  }

  /** A change of members begins with the next turn. */
  ask(change: AskedChange): void {
    this.#changes.ask(change);
    this.activate(change.group);
  }

  /** A change was asked for and has not begun. */
  isAsked(group: Group): boolean {
    return this.#changes.has(group);
  }

  isRemoving(group: GroupId): boolean {
    return this.#disk.isRemoving(group);
  }

  /** The group has left the node: nothing more of it leaves, who waits for it has lost it, the next write deletes it. */
  remove(group: Group, placement: number, done: (tombstone: StoredGroup) => void): void {
    this.#active.delete(group);
    this.#wantsProposal.delete(group);
    this.#outbox.keep((message) => !('group' in message) || message.group !== group.id);
    this.#traffic.forget(group);
    this.#rests.forget(group);
    this.#rounds.forget(group);
    this.#disk.remove(group, placement, done);
    this.#changes.forget(group);
    closeGroup(group);
    this.#schedule();
  }

  /** Tick number `ticks` has reached all cores that do not rest; now those that do, the disk and the snapshots on their way. */
  tick(ticks: number): void {
    this.#rests.tick(ticks);
    this.#rounds.tick();
    this.#disk.tick();
    this.#traffic.tick(ticks, this.#init.options.raft.heartbeatTicks);
    this.#schedule();
  }

  peerLost(peer: NodeId): void {
    this.#rests.peerLost(peer);
    this.#traffic.peerLost(peer);
  }

  #fail(error: unknown): void {
    if (this.#isStopped) return;
    this.stop();
    this.#init.fatal(error);
  }

  #schedule(): void {
    if (this.#isScheduled || !this.isRunning) return;
    this.#isScheduled = true;
    this.#init.defer(() => {
      this.#isScheduled = false;
      if (!this.#isStopped) this.guard(() => this.#turn());
    });
  }

  /** Runs `work`, of a turn or of a tick. Whatever it throws is a broken invariant: told once, and nothing leaves after it. */
  guard(work: () => void): void {
    try {
      work();
    } catch (error) {
      this.#fail(error);
    }
  }

  #turn(): void {
    this.#stepInbox();
    this.#traffic.run();
    this.#changes.begin((group) => this.#enlist(group));
    const isHeld = !this.#mayPropose;
    if (!isHeld) this.#propose();
    // A group stays active until it was offered to the disk, so nothing is forgotten during a write.
    for (const group of this.#active) this.#sendAndApply(group);
    if (!this.#disk.isWriting) this.#write();
    this.#outbox.flush(this.#init.send);
    // This turn applied the last entry of the round: the next turn proposes what waits.
    if (isHeld && this.#mayPropose && this.#wantsProposal.size > 0) this.#schedule();
  }

  #stepInbox(): void {
    for (const envelope of this.#inbox.splice(0)) {
      switch (envelope.kind) {
        case 'beat':
          this.#rests.receiveBeat(envelope);
          break;
        case 'beatAnswer':
          this.#rests.receiveAnswer(envelope);
          break;
        default:
          this.#stepGroup(envelope);
      }
    }
  }

  #stepGroup(envelope: GroupPeerMessage): void {
    const group = this.#groups.get(envelope.group);
    if (group === undefined) return;
    switch (envelope.kind) {
      case 'message': {
        const { message } = envelope;
        // An answer that was on its way when the group came to rest says nothing that its leader does not know.
        if (message.type !== 'heartbeatResponse' || message.term !== group.core.term) this.#rests.wake(group);
        group.core.step(message);
        this.settle(group);
        return;
      }
      case 'chunk':
        this.#enlist(group);
        this.#traffic.receive(group, envelope);
        return;
      case 'chunkAck':
        this.#enlist(group);
        this.#traffic.acknowledged(envelope);
    }
  }

  get #mayPropose(): boolean {
    return !this.#disk.isWriting && this.#rounds.isOver;
  }

  #propose(): void {
    this.#rounds.begin();
    for (const group of this.#wantsProposal) {
      if (group.core.role === 'leader' && !group.core.acceptsProposals) continue;
      this.#wantsProposal.delete(group);
      tellStatus(group);
      if (group.core.role !== 'leader') continue;
      const data = group.app.takeProposal();
      if (data === undefined) continue;
      this.#enlist(group);
      const entry = group.core.propose(data);
      if (entry !== undefined) this.#rounds.proposed(group, entry.index);
      group.app.proposed(entry);
    }
  }

  /** Everything that needs no disk: tell, send, apply. */
  #sendAndApply(group: Group): void {
    tellStatus(group);
    group.reads.start();
    this.#sendFrom(group);
    const { config, role } = group.core;
    this.#apply(group);
    group.reads.finish();
    // After those who ask for one were told up to where.
    const { wantedAt } = group.snapshots;
    if (wantedAt !== undefined) takeSnapshotIfDue(group, wantedAt, 0, 1);
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
    const patience = this.#traffic.isSending(group.id) || group.snapshots.readers > 0 ? 4 : 1;
    if (last !== undefined) takeSnapshotIfDue(group, last, snapshotEveryBytes, patience);
  }

  #write(): void {
    const groups = [...this.#active];
    this.#active.clear();
    this.#disk.write(groups);
  }
}
