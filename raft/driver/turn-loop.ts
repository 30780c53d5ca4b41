/**
 * The turn: one pass over the groups of a node that have work. Give the cores the messages that arrived (step) ->
 * propose -> queue the messages that need not wait for the disk -> apply -> begin one synced write for all groups ->
 * send the queued messages. Messages are stepped in every turn. Proposals wait for the write in flight and for the
 * previous round (rounds.ts), so that requests that arrive meanwhile share one entry per group.
 *
 * It knows which groups have work, but decides neither which groups there are nor who should lead them.
 */
import { assert } from '../assert.ts';
import { applyCommitted, takeSnapshotIfDue } from './apply.ts';
import { closeGroup, type Group, isReported, reportStatus } from './group.ts';
import { GroupCommit } from './group-commit.ts';
import type { MultiRaftInit } from './multi-raft-options.ts';
import { Outbox } from '../outbox.ts';
import type { GroupPeerMessage, PeerMessage } from './peer-message.ts';
import { type AskedChange, PendingChanges } from './pending-changes.ts';
import { Rests } from './rests.ts';
import { Rounds } from './rounds.ts';
import { SnapshotTraffic } from './snapshot-traffic.ts';
import type { GroupId, NodeId, StoredGroup } from '../types.ts';

/** The number of a process is random below this. */
const PROCESS_BOUND = 2 ** 31;

/** Runs the turns of all groups of a node. */
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

  /** `stalled` is called with true when the disk stops answering, and with false when it answers again. */
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

  /** Whether it was started and not stopped. */
  get isRunning(): boolean {
    return this.#isStarted && !this.#isStopped;
  }

  /** Starts the turns. */
  start(): void {
    assert(!this.#isStarted, 'a driver may be started only once');
    this.#isStarted = true;
    this.#schedule();
  }

  /** Nothing is sent, written or applied after this. */
  stop(): void {
    this.#isStopped = true;
    this.#disk.stop();
  }

  /** The group has work in the next turn. */
  activate(group: Group): void {
    this.#enlist(group);
    this.#schedule();
  }

  /** Adds the group to this turn, and wakes it. */
  #enlist(group: Group): void {
    this.#rests.busy(group);
    this.#active.add(group);
  }

  /**
   * Called after a tick or a message of the group. Usually the group only has messages to send, which needs no full
   * turn. Call it only within `guard`.
   */
  settle(group: Group): void {
    if (this.#active.has(group)) return;
    if (group.core.isAtRest && isReported(group)) this.#sendFrom(group);
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

  /** Begins a change of members with the next turn. */
  ask(change: AskedChange): void {
    this.#changes.ask(change);
    this.activate(change.group);
  }

  /** Whether a requested change has not begun yet. */
  isAsked(group: Group): boolean {
    return this.#changes.has(group);
  }

  isRemoving(group: GroupId): boolean {
    return this.#disk.isRemoving(group);
  }

  /** Removes a group: drops its messages, answers its waiting requests as lost, and deletes it with the next write. */
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

  /**
   * Counts a tick for resting groups, the disk and the snapshot streams. `MultiRaft` has already ticked the other
   * groups.
   */
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

  /**
   * Runs `work` of a turn or a tick. Anything it throws is a broken invariant: reports it once, and sends nothing after
   * it.
   */
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
    // A group stays active until its data was offered to the disk, so nothing is forgotten while a write is running.
    for (const group of this.#active) this.#sendAndApply(group);
    if (!this.#disk.isWriting) this.#write();
    this.#outbox.flush(this.#init.send);
    // This turn applied the last entry of the round, so the next turn proposes what waits.
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
        // An answer that was on its way when the group came to rest is no news to its leader.
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
      reportStatus(group);
      if (group.core.role !== 'leader') continue;
      const data = group.app.takeProposal();
      if (data === undefined) continue;
      this.#enlist(group);
      const entry = group.core.propose(data);
      if (entry !== undefined) this.#rounds.proposed(group, entry.index);
      group.app.proposed(entry);
    }
  }

  /** Does what needs no disk: reports the status, sends, applies. */
  #sendAndApply(group: Group): void {
    reportStatus(group);
    group.reads.start();
    this.#sendFrom(group);
    const { config, role } = group.core;
    this.#apply(group);
    group.reads.finish();
    // After `reads.finish`: a snapshot that a backup asked for must reach the index of its read.
    const { wantedAt } = group.snapshots;
    if (wantedAt !== undefined) takeSnapshotIfDue(group, wantedAt, 0, 1);
    if (group.core.config === config && group.core.role === role) return;
    // The consequences of a new configuration need not wait for another turn.
    reportStatus(group);
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
    // A node that catches up must still answer clients and heartbeats, so all groups share the budget of a turn.
    const bytesMax = Math.ceil(applyBytesMax / Math.max(1, this.#active.size));
    const last = applyCommitted(group, bytesMax);
    // Replacing a snapshot that is being read would restart the stream: wait, but not forever.
    const patience = this.#traffic.isSending(group.id) || group.snapshots.readers > 0 ? 4 : 1;
    if (last !== undefined) takeSnapshotIfDue(group, last, snapshotEveryBytes, patience);
  }

  #write(): void {
    const groups = [...this.#active];
    this.#active.clear();
    // A read that was asked for while this turn applied or answered begins with the next turn, which is scheduled.
    for (const group of groups) if (group.reads.isAsked) this.#active.add(group);
    this.#disk.write(groups);
  }
}
