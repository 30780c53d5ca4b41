/**
 * Runs all groups of a node: turns what their cores want into messages, one disk write and applied entries,
 * through interfaces declared here. It owns no timer, thread or socket.
 *
 * One turn: step what arrived -> propose what waits -> send -> apply -> write everything in one synced batch.
 * While that write is in flight the next turn fills up; that is the group commit, and it adapts to the load by
 * itself. Messages are stepped during the write too; only proposals wait for the turn, to travel in one entry.
 */
import { assert } from './assert.ts';
import { crc32 } from './checksum.ts';
import { RaftCore, type RaftStatus, type Ready } from './core.ts';
import { RAFT_DEFAULTS, type RaftOptions, type RandomBelow } from './core-state.ts';
import { entryBytes } from './log.ts';
import { votersOf, type MembershipChange, type MembershipRefusal } from './membership.ts';
import type { PeerMessage } from './peer-message.ts';
import { IncomingSnapshots, OutgoingSnapshots, type SnapshotStreamOptions } from './snapshot-streams.ts';
import type { GroupWrite, LogStore, StoredGroup } from './store.ts';
import {
  NO_NODE,
  type Entry,
  type GroupClock,
  type GroupConfig,
  type GroupId,
  type LogPosition,
  type NodeId,
  type Snapshot,
  type SnapshotMeta,
} from './types.ts';

/** The state machine of one group. All calls come from within a turn; none may call back into the driver's turn. */
export interface GroupApplication {
  readonly clock: GroupClock;
  /** The next command to replicate, or undefined. Asked once per turn while this node leads. */
  takeProposal(): Uint8Array | undefined;
  /** What became of the last `takeProposal`: its place in the log, or undefined if it was refused. */
  proposed(entry: Entry | undefined): void;
  /** Called once per entry, in log order, no-ops and configurations included. Must be deterministic. */
  apply(entry: Entry): void;
  /** The state after the last applied entry, in chunks. */
  snapshot(): readonly Uint8Array[];
  /** Replaces the state. */
  restore(snapshot: Snapshot): void;
  /**
   * The configuration in effect: after the entry or snapshot that brought it was applied, and when the group is
   * added. A change of voters is seen twice, the first time with `outgoing` voters.
   */
  configChanged?(config: GroupConfig): void;
  /** Role, term or leader changed. */
  statusChanged(status: { readonly isLeader: boolean; readonly term: number; readonly leader: NodeId }): void;
}

export interface MultiRaftOptions {
  readonly raft: Omit<RaftOptions, 'preferred'>;
  /** A snapshot is taken after this many applied bytes, or after as many as the last snapshot had. */
  readonly snapshotEveryBytes: number;
  /** Log kept behind a snapshot for followers that are a little late. */
  readonly keepLogBytes: number;
  /** Snapshot chunks written per batch. */
  readonly snapshotWriteBytesMax: number;
  /** Entries applied per turn and group. */
  readonly applyBytesMax: number;
  readonly streams: SnapshotStreamOptions;
  /** A node whose disk write takes longer gives up its leaderships. Two election timeouts if absent. */
  readonly diskStallTicksMax?: number;
  /** How often a leader looks whether a group's preferred leader could take over; one group per look. */
  readonly balanceTicks: number;
}

export const MULTI_RAFT_DEFAULTS: MultiRaftOptions = {
  raft: RAFT_DEFAULTS,
  snapshotEveryBytes: 4 << 20,
  keepLogBytes: 1 << 20,
  snapshotWriteBytesMax: 1 << 20,
  applyBytesMax: 4 << 20,
  streams: { outgoingMax: 4, silentTicksMax: 300, bytesPerTickMax: 1 << 20 },
  balanceTicks: 25,
};

export interface MultiRaftInit {
  readonly id: NodeId;
  readonly store: LogStore;
  readonly random: RandomBelow;
  readonly options: MultiRaftOptions;
  /** Runs `turn` soon, but not now: after what is already queued. */
  readonly defer: (turn: () => void) => void;
  /** Hands over everything for one peer in this turn. May drop; Raft repairs. */
  readonly send: (to: NodeId, messages: readonly PeerMessage[]) => void;
  /** The disk failed or an invariant broke. The driver has stopped; the process must end. */
  readonly fatal: (error: unknown) => void;
}

/**
 * What became of a change of members. `ok`: `config` is in effect on this node, a quorum of the new voters knows, and
 * nothing of the change is left to do. A refusal says that nothing was changed; after `unknownOutcome`, when this node
 * lost the lead midway, the change may yet complete under another leader: look at the configuration of the group.
 */
export type MembershipResult =
  | { readonly ok: true; readonly config: GroupConfig }
  | { readonly ok: false; readonly reason: MembershipRefusal | 'unknownOutcome' };

/** Called once, from within a turn. */
export type MembershipDone = (result: MembershipResult) => void;

/** Told once, from within a turn: the index this node has applied and may be read at, or undefined: ask again. */
export type ReadDone = (index: number | undefined) => void;

/** Reads of one group that wait, for a quorum or for entries to be applied; more are refused. */
const READS_WAITING_MAX = 65_536;

/** A successor that lacks more than this would keep proposals waiting for too long. */
const BALANCE_LAG_ENTRIES_MAX = 64;
/** Looks to wait before a transfer that failed is tried again. */
const BALANCE_PATIENCE = 40;

interface Staging {
  readonly meta: SnapshotMeta;
  readonly chunks: readonly Uint8Array[];
  nextChunk: number;
  /** Of the chunks before `nextChunk`. */
  checksum: number;
}

interface Group {
  readonly id: GroupId;
  readonly core: RaftCore;
  readonly app: GroupApplication;
  preferredLeader: NodeId;
  /** Not handed to its preferred leader before this tick. */
  balanceAtTick: number;
  /** The snapshot on disk. */
  snapshot: SnapshotMeta | undefined;
  appliedBytesSinceSnapshot: number;
  /** A snapshot on its way to the disk. */
  staging: Staging | undefined;
  /** The change of members that this node proposed. */
  change: { readonly index: number; readonly term: number; readonly done: MembershipDone } | undefined;
  /** Reads that came since the last turn. */
  newReads: ReadDone[];
  /** By ticket of the core. */
  readonly reads: Map<number, readonly ReadDone[]>;
  /** Confirmed: wait until the index is applied. Indexes do not decrease. */
  readonly dueReads: { readonly index: number; readonly done: readonly ReadDone[] }[];
  readsWaiting: number;
  /** What the application was last told. */
  told: { isLeader: boolean; term: number; leader: NodeId };
}

interface PendingWrite {
  readonly group: Group;
  readonly ready: Ready | undefined;
  /** Set when this write completes a local snapshot. */
  readonly snapshot: { readonly meta: SnapshotMeta; readonly compactTo: LogPosition } | undefined;
}

export class MultiRaft {
  readonly #init: MultiRaftInit;
  readonly #groups = new Map<GroupId, Group>();
  readonly #inbox: PeerMessage[] = [];
  /** Groups whose core may have something to send, write or apply. */
  readonly #active = new Set<Group>();
  readonly #wantsProposal = new Set<Group>();
  readonly #changes: { group: Group; change: MembershipChange; epoch: number; done: MembershipDone }[] = [];
  readonly #outbox = new Map<NodeId, PeerMessage[]>();
  readonly #outgoing: OutgoingSnapshots;
  readonly #incoming: IncomingSnapshots;
  #writing = false;
  /** Ticks since the write in flight began. */
  #writeTicks = 0;
  #diskIsStalled = false;
  #scheduled = false;
  #stopped = false;
  #avoidsLeading = false;
  #ticks = 0;

  constructor(init: MultiRaftInit) {
    this.#init = init;
    this.#incoming = new IncomingSnapshots(init.id);
    this.#outgoing = new OutgoingSnapshots({
      id: init.id,
      store: init.store,
      options: init.options.streams,
      send: (to, chunk) => {
        this.#post(to, chunk);
        this.#schedule();
      },
      done: (group, to, arrived) => {
        const target = this.#groups.get(group);
        if (target === undefined) return;
        target.core.snapshotDone(to, arrived);
        this.#activate(target);
      },
      failed: (error) => this.#fail(error),
    });
  }

  /** Adds a group with what the disk held for it, and applies what is known to be committed. */
  addGroup(init: {
    readonly group: GroupId;
    /** Those the group began with, however it changed since; none on a node that joins a running group. */
    readonly voters: readonly NodeId[];
    /** The voter that should lead when it can. */
    readonly preferredLeader: NodeId;
    readonly app: GroupApplication;
    readonly stored: StoredGroup | undefined;
  }): void {
    assert(!this.#groups.has(init.group), `group ${init.group} was added twice`);
    const { app, stored } = init;
    if (stored?.snapshot !== undefined) app.restore(stored.snapshot);
    const core = new RaftCore({
      id: this.#init.id,
      voters: init.voters,
      stored,
      clock: app.clock,
      random: this.#init.random,
      options: { ...this.#init.options.raft, preferred: init.preferredLeader === this.#init.id },
    });
    const group: Group = {
      id: init.group,
      core,
      app,
      preferredLeader: init.preferredLeader,
      balanceAtTick: 0,
      snapshot: stored?.snapshot?.meta,
      appliedBytesSinceSnapshot: 0,
      staging: undefined,
      change: undefined,
      newReads: [],
      reads: new Map(),
      dueReads: [],
      readsWaiting: 0,
      told: { isLeader: false, term: 0, leader: NO_NODE },
    };
    this.#groups.set(init.group, group);
    core.setReluctant(this.#avoidsLeading);
    app.configChanged?.(core.config);
    this.#activate(group);
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
    return target.core.isChanging || this.#changes.some((change) => change.group === target);
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

  /** Messages from a peer. Those for groups this node does not hold are dropped. */
  receive(messages: readonly PeerMessage[]): void {
    for (const message of messages) this.#inbox.push(message);
    this.#schedule();
  }

  /** The group's application has a proposal waiting. */
  requestProposal(group: GroupId): void {
    const target = this.#groups.get(group);
    assert(target !== undefined, `group ${group} is not on this node`);
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
    const target = this.#groups.get(group);
    assert(target !== undefined, `group ${group} is not on this node`);
    this.#changes.push({ group: target, change, epoch, done });
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
    const target = this.#groups.get(group);
    assert(target !== undefined, `group ${group} is not on this node`);
    target.newReads.push(done);
    this.#activate(target);
  }

  /** Time passed: one tick for every group. */
  tick(): void {
    if (this.#stopped) return;
    for (const group of this.#groups.values()) {
      group.core.tick();
      this.#active.add(group);
    }
    this.#watchDisk();
    this.#outgoing.tick();
    this.#incoming.tick(10 * this.#init.options.streams.silentTicksMax);
    this.#ticks += 1;
    if (this.#ticks % this.#init.options.balanceTicks === 0) this.#balance();
    this.#schedule();
  }

  #watchDisk(): void {
    const { diskStallTicksMax, raft } = this.#init.options;
    if (!this.#writing || this.#diskIsStalled) return;
    this.#writeTicks += 1;
    if (this.#writeTicks > (diskStallTicksMax ?? 2 * raft.electionTicks)) this.#setDiskStalled(true);
  }

  #setDiskStalled(isStalled: boolean): void {
    this.#diskIsStalled = isStalled;
    for (const group of this.#groups.values()) {
      group.core.diskStalled(isStalled);
      this.#active.add(group);
    }
  }

  /** Hands one group to its preferred leader, so that after a failover the load spreads out again, gently. */
  #balance(): void {
    for (const group of this.#groups.values()) {
      const { core, preferredLeader } = group;
      if (core.role !== 'leader' || core.id === preferredLeader || this.#ticks < group.balanceAtTick)
        continue;
      if (!core.isAlmostCaughtUp(preferredLeader, BALANCE_LAG_ENTRIES_MAX)) continue;
      // Nothing is proposed during a transfer, so one that failed is not tried again at once.
      group.balanceAtTick = this.#ticks + this.#init.options.balanceTicks * BALANCE_PATIENCE;
      // A preferred leader that is a learner now is none.
      if (core.transferLeadership(preferredLeader)) return;
    }
  }

  /** The connection from `peer` broke. Its groups look for a new leader at once, one replica after the other. */
  peerLost(peer: NodeId): void {
    if (this.#stopped) return;
    this.#outgoing.peerLost(peer);
    const { heartbeatTicks } = this.#init.options.raft;
    for (const group of this.#groups.values()) {
      group.core.peerUnreachable(peer);
      if (group.core.leader !== peer) continue;
      // The survivors take turns, in an order that differs from group to group, so that votes are rarely split.
      const survivors = votersOf(group.core.config).filter((voter) => voter !== peer);
      const position = survivors.indexOf(this.#init.id);
      const turn = position === -1 ? 0 : (position + group.id) % survivors.length;
      group.core.forgetLeader(1 + turn * heartbeatTicks + this.#init.random(2));
      this.#activate(group);
    }
  }

  /** Before a graceful stop: hands every group this node leads to a voter that is up to date, if there is one. */
  handOver(): void {
    if (this.#stopped) return;
    for (const group of this.#groups.values()) {
      const { core } = group;
      const able = core.voters.filter((voter) => voter !== core.id && core.isAlmostCaughtUp(voter, 0));
      // Not always the same one: it may be unwilling.
      const successor = able[able.length > 1 ? this.#init.random(able.length) : 0];
      if (core.role === 'leader' && successor !== undefined) core.transferLeadership(successor);
      this.#activate(group);
    }
  }

  /**
   * While this node can propose nothing, others should lead: hands over what it leads and accepts no transfer. It goes
   * on leading what nobody else takes. To be called again while it lasts, for it may be elected after all.
   */
  avoidLeading(avoids: boolean): void {
    this.#avoidsLeading = avoids;
    for (const { core } of this.#groups.values()) core.setReluctant(avoids);
    if (avoids && this.leaderships > 0) this.handOver();
  }

  /** How many groups this node leads. */
  get leaderships(): number {
    if (this.#stopped) return 0;
    let count = 0;
    for (const { core } of this.#groups.values()) if (core.role === 'leader') count += 1;
    return count;
  }

  /** Takes part no more: nothing is sent, written or applied after this. */
  stop(): void {
    this.#stopped = true;
  }

  #fail(error: unknown): void {
    if (this.#stopped) return;
    this.#stopped = true;
    this.#init.fatal(error);
  }

  #activate(group: Group): void {
    this.#active.add(group);
    this.#schedule();
  }

  #schedule(): void {
    if (this.#scheduled || this.#stopped) return;
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
      this.#beginChanges();
      if (!this.#writing) this.#propose();
      // A group stays active until it was offered to the disk, so nothing is forgotten during a write.
      for (const group of this.#active) this.#settle(group);
      if (!this.#writing) this.#write();
      this.#flush();
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
        case 'chunk': {
          const { ack, install } = this.#incoming.receive(envelope);
          if (ack !== undefined) this.#post(envelope.from, ack);
          if (install !== undefined) group.core.step(install);
          break;
        }
        case 'chunkAck':
          this.#outgoing.acknowledged(envelope);
          break;
      }
      this.#active.add(group);
    }
  }

  #startReads(group: Group): void {
    if (group.newReads.length === 0) return;
    const asked = group.newReads;
    const room = READS_WAITING_MAX - group.readsWaiting;
    group.newReads = [];
    const ticket = group.core.requestRead();
    const accepted = ticket === undefined ? [] : asked.splice(0, room);
    if (ticket !== undefined) {
      group.reads.set(ticket, accepted);
      group.readsWaiting += accepted.length;
    }
    for (const done of asked) done(undefined);
  }

  #finishReads(group: Group): void {
    for (const { ticket, index } of group.core.takeReads()) {
      const done = group.reads.get(ticket);
      if (done !== undefined) group.dueReads.push({ index, done });
      group.reads.delete(ticket);
    }
    let count = 0;
    for (const { index, done } of group.dueReads) {
      if (index > group.core.applied) break;
      count += 1;
      group.readsWaiting -= done.length;
      for (const each of done) each(index);
    }
    group.dueReads.splice(0, count);
  }

  /** The questions of a term that is over will never be answered. */
  #failReads(group: Group): void {
    this.#finishReads(group);
    for (const done of group.reads.values()) {
      group.readsWaiting -= done.length;
      for (const each of done) each(undefined);
    }
    group.reads.clear();
  }

  #beginChanges(): void {
    for (const { group, change, epoch, done } of this.#changes.splice(0)) {
      this.#tellStatus(group);
      const begun = group.core.changeMembership(change, epoch);
      if (typeof begun === 'string') {
        done({ ok: false, reason: begun });
        continue;
      }
      assert(
        group.change === undefined,
        `group ${group.id} began a change before the one before was complete`,
      );
      group.change = { index: begun.index, term: begun.term, done };
      this.#active.add(group);
    }
  }

  #endChange(group: Group, result: MembershipResult): void {
    const { change } = group;
    group.change = undefined;
    change?.done(result);
  }

  #propose(): void {
    for (const group of this.#wantsProposal) {
      if (group.core.isTransferring) continue;
      this.#wantsProposal.delete(group);
      this.#tellStatus(group);
      if (group.core.role !== 'leader') continue;
      const data = group.app.takeProposal();
      if (data === undefined) continue;
      group.app.proposed(group.core.propose(data));
      this.#active.add(group);
    }
  }

  #tellStatus(group: Group): void {
    const { core, told } = group;
    const isLeader = core.role === 'leader';
    if (told.isLeader === isLeader && told.term === core.term && told.leader === core.leader) return;
    if (told.isLeader && (!isLeader || told.term !== core.term)) this.#failReads(group);
    group.told = { isLeader, term: core.term, leader: core.leader };
    if (group.change !== undefined && group.change.term !== (isLeader ? core.term : 0)) {
      this.#endChange(group, { ok: false, reason: 'unknownOutcome' });
    }
    group.app.statusChanged(group.told);
  }

  /** Everything that needs no disk: tell, send, apply. */
  #settle(group: Group): void {
    this.#tellStatus(group);
    this.#startReads(group);
    this.#sendFrom(group);
    const { config, role } = group.core;
    this.#apply(group);
    this.#finishReads(group);
    if (group.core.config === config && group.core.role === role) return;
    // What a new configuration makes the core do need not wait for another turn.
    this.#tellStatus(group);
    this.#sendFrom(group);
  }

  #sendFrom(group: Group): void {
    for (const message of group.core.takeMessages()) {
      if (message.type === 'snapshot') this.#outgoing.start(group.id, message, group.snapshot);
      else this.#post(message.to, { kind: 'message', group: group.id, message });
    }
  }

  #post(to: NodeId, message: PeerMessage): void {
    const messages = this.#outbox.get(to);
    if (messages === undefined) this.#outbox.set(to, [message]);
    else messages.push(message);
  }

  /** One batch of messages per peer and turn. */
  #flush(): void {
    for (const [to, messages] of this.#outbox) this.#init.send(to, messages);
    this.#outbox.clear();
  }

  #apply(group: Group): void {
    const entries = group.core.applicable(this.#init.options.applyBytesMax);
    const last = entries.at(-1);
    if (last === undefined) return;
    for (const entry of entries) {
      group.app.apply(entry);
      group.appliedBytesSinceSnapshot += entryBytes(entry);
      if (entry.kind === 'config') this.#applyConfig(group, entry);
    }
    if (group.core.applied < last.index) group.core.appliedTo(last.index);
    // Whoever lost the lead was told so before; only a leader that removed itself leads no more just now.
    if (group.change !== undefined && !group.core.isChanging) {
      this.#endChange(group, { ok: true, config: group.core.config });
    }
    this.#maybeTakeSnapshot(group, last);
  }

  #applyConfig(group: Group, entry: Entry): void {
    group.core.appliedTo(entry.index);
    const { config } = group.core;
    group.app.configChanged?.(config);
    const { change } = group;
    assert(change?.index !== entry.index || change.term === entry.term, 'a leader keeps its log');
  }

  #maybeTakeSnapshot(group: Group, applied: LogPosition): void {
    const { snapshotEveryBytes } = this.#init.options;
    const due = Math.max(snapshotEveryBytes, group.snapshot?.byteLength ?? 0);
    // Replacing a snapshot that is being streamed would start the stream over: wait, but not for ever.
    const patience = this.#outgoing.isSending(group.id) ? 4 : 1;
    if (group.staging !== undefined || group.appliedBytesSinceSnapshot < due * patience) return;
    // A node that joined, and has not come to the entry that says so, does not know whose snapshot it would be.
    if (group.core.voters.length === 0) return;
    const chunks = group.app.snapshot();
    let byteLength = 0;
    for (const chunk of chunks) byteLength += chunk.byteLength;
    const { index, term, timeMillis } = applied;
    group.staging = {
      meta: { index, term, timeMillis, ...group.core.config, chunkCount: chunks.length, byteLength },
      chunks,
      nextChunk: 0,
      checksum: 0,
    };
    group.appliedBytesSinceSnapshot = 0;
  }

  /** Collects what every active group wants on disk and writes it in one synced batch. */
  #write(): void {
    const writes: GroupWrite[] = [];
    const pending: PendingWrite[] = [];
    let chunkBytesLeft = this.#init.options.snapshotWriteBytesMax;
    const active = [...this.#active];
    this.#active.clear();
    for (const group of active) {
      const ready = group.core.ready();
      if (ready?.install !== undefined) group.staging = undefined;
      if (ready !== undefined && !ready.mustWrite) this.#release({ group, ready, snapshot: undefined });
      const toWrite = ready?.mustWrite === true ? ready : undefined;
      const { staging } = group;
      const chunk = staging?.chunks[staging.nextChunk];
      const takeChunk = chunk !== undefined && chunkBytesLeft > 0;
      const isComplete = staging !== undefined && chunk === undefined;
      // More than a turn's worth to apply, or a snapshot chunk that did not fit: another turn.
      if (group.core.hasApplicable || (chunk !== undefined && !takeChunk)) this.#activate(group);
      if (toWrite === undefined && !takeChunk && !isComplete) continue;
      const snapshot =
        staging !== undefined && isComplete
          ? {
              meta: { ...staging.meta, checksum: staging.checksum },
              compactTo: group.core.compactionPoint(staging.meta.index, this.#init.options.keepLogBytes),
            }
          : undefined;
      writes.push({
        group: group.id,
        entries: toWrite?.entries ?? [],
        ...(toWrite !== undefined && { hardState: toWrite.hardState }),
        ...(toWrite?.install !== undefined && { install: installOf(toWrite) }),
        ...(staging !== undefined &&
          takeChunk && {
            snapshotChunk: { index: staging.meta.index, chunk: staging.nextChunk, data: chunk },
          }),
        ...(snapshot !== undefined && { snapshot: snapshot.meta, compactTo: snapshot.compactTo }),
      });
      if (staging !== undefined && takeChunk) {
        chunkBytesLeft -= chunk.byteLength;
        staging.nextChunk += 1;
        staging.checksum = crc32(chunk, staging.checksum);
      }
      pending.push({ group, ready: toWrite, snapshot });
    }
    if (writes.length === 0) return;
    this.#writing = true;
    this.#writeTicks = 0;
    this.#init.store.write(writes, (error) => this.#written(pending, error));
  }

  #written(pending: readonly PendingWrite[], error: Error | undefined): void {
    this.#writing = false;
    if (this.#stopped) return;
    if (error !== undefined) {
      // What the disk holds now is unknown: not a word more (P6).
      this.#fail(error);
      return;
    }
    if (this.#diskIsStalled) this.#setDiskStalled(false);
    try {
      for (const write of pending) this.#release(write);
    } catch (caught) {
      this.#fail(caught);
      return;
    }
    this.#turn();
  }

  /** A group's write is on disk: what waited for it may leave. */
  #release({ group, ready, snapshot }: PendingWrite): void {
    if (snapshot !== undefined) {
      group.snapshot = snapshot.meta;
      group.staging = undefined;
      group.core.compact(snapshot.compactTo.index);
    }
    if (ready !== undefined) {
      if (ready.install !== undefined) {
        const installed = installOf(ready);
        group.snapshot = installed.meta;
        group.appliedBytesSinceSnapshot = 0;
        group.app.restore(installed);
        group.app.configChanged?.(group.core.config);
      }
      group.core.advance(ready);
      for (const message of ready.afterSync) {
        if (message.to !== this.#init.id)
          this.#post(message.to, { kind: 'message', group: group.id, message });
      }
    }
    this.#activate(group);
  }
}

function installOf(ready: Ready): Snapshot {
  const { install } = ready;
  assert(install?.chunks !== undefined, 'a snapshot to install has its chunks');
  return { meta: install.meta, chunks: install.chunks };
}
