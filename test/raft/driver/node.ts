/**
 * A node with the real driver and a disk in memory. The test starts and crashes it, and runs its turns and disk writes
 * one at a time. `Surroundings` connects it to other nodes.
 */
import { assert } from '../../../raft/assert.ts';
import type { RandomBelow } from '../../../raft/core-state.ts';
import type { RaftStatus } from '../../../raft/status.ts';
import { MultiRaft, type MultiRaftOptions } from '../../../raft/driver/multi-raft.ts';
import type { PeerMessage } from '../../../raft/driver/peer-message.ts';
import { isJoint } from '../../../raft/membership.ts';
import type { GroupId, NodeId, StoredGroup } from '../../../raft/types.ts';
import type { DurableGroup, Fate, MemoryDisk } from '../../../storage/memory-store.ts';
import { watchdog } from '../watchdog.ts';
import type { Agreement } from './agreement.ts';
import { GROUP } from './options.ts';
import { TestApplication } from './test-application.ts';
import { WatchedStore } from './watched-store.ts';
import { restoreFrom } from './whole-snapshots.ts';

export interface Surroundings {
  readonly groups: readonly GroupId[];
  readonly options: MultiRaftOptions;
  readonly random: RandomBelow;
  readonly agreement: Agreement;
  readonly now: number;
  post(from: NodeId, to: NodeId, messages: readonly PeerMessage[]): void;
}

/** From a start to the crash that ends it. */
interface Life {
  readonly store: WatchedStore;
  readonly raft: MultiRaft;
}

export class Node {
  readonly id: NodeId;
  readonly #surroundings: Surroundings;
  readonly #voters: readonly NodeId[];
  #disk: MemoryDisk = new Map();
  #life: Life | undefined;
  readonly #apps = new Map<GroupId, TestApplication>();
  /** By group: the tombstone on this node's disk, if its replica was removed. */
  readonly #tombstones = new Map<GroupId, StoredGroup>();
  readonly #deferred: (() => void)[] = [];
  #complete: (() => void) | undefined;
  /** The errors that ended its process since the last start. */
  readonly fatals: unknown[] = [];
  /** Set by tests that expect the process to end; otherwise its end fails the test. */
  mayEnd = false;
  /** By how much its own clock has gained on real time. */
  clockAheadMillis = 0;
  /** Snapshots of leaders that it found damaged. */
  readonly refused: unknown[] = [];

  constructor(id: NodeId, surroundings: Surroundings, voters: readonly NodeId[]) {
    this.id = id;
    this.#surroundings = surroundings;
    this.#voters = voters;
  }

  get isUp(): boolean {
    return this.#life !== undefined;
  }

  get #monotonicMillis(): number {
    return this.#surroundings.now + this.clockAheadMillis;
  }

  get #alive(): Life {
    assert(this.#life !== undefined, `node ${this.id} is down`);
    return this.#life;
  }

  get raft(): MultiRaft {
    return this.#alive.raft;
  }

  get store(): WatchedStore {
    return this.#alive.store;
  }

  get hasTurn(): boolean {
    return this.#deferred.length > 0;
  }

  get isWriting(): boolean {
    return this.#complete !== undefined;
  }

  get disk(): MemoryDisk {
    return this.#life?.store.memory.disk() ?? this.#disk;
  }

  /** The application of a group; that of the last life if the node is down. */
  appOf(group: GroupId): TestApplication {
    const app = this.#apps.get(group);
    assert(app !== undefined, `node ${this.id} has no group ${group}`);
    return app;
  }

  get app(): TestApplication {
    return this.appOf(GROUP);
  }

  statusOf(group: GroupId): RaftStatus {
    const status = this.raft.status(group);
    assert(status !== undefined, `node ${this.id} has no group ${group}`);
    return status;
  }

  get status(): RaftStatus {
    return this.statusOf(GROUP);
  }

  /** True while this node knows of a joint configuration: old and new voters decide together. */
  get isJoint(): boolean {
    return isJoint(this.status.config);
  }

  /** False if its replica was removed, or if the node is down. */
  get holdsGroup(): boolean {
    return this.#life?.raft.status(GROUP) !== undefined;
  }

  leads(group: GroupId): boolean {
    return this.#life?.raft.status(group)?.role === 'leader';
  }

  get isLeader(): boolean {
    return this.leads(GROUP);
  }

  get tombstone(): StoredGroup | undefined {
    return this.#tombstones.get(GROUP);
  }

  start(): void {
    const { groups, options, random } = this.#surroundings;
    this.fatals.length = 0;
    const store = new WatchedStore({
      schedule: (fn) => {
        this.#complete = fn;
      },
      disk: this.#disk,
    });
    const raft: MultiRaft = new MultiRaft({
      id: this.id,
      store,
      random,
      monotonicMillis: () => this.#monotonicMillis,
      options,
      defer: (turn) => this.#deferred.push(turn),
      send: (to, messages) => {
        assert(this.fatals.length === 0, `node ${this.id} sends a message after its end`);
        if (this.#life?.raft === raft) this.#surroundings.post(this.id, to, messages);
      },
      snapshotRefused: (_group, _meta, error) => this.refused.push(error),
      fatal: (error) => this.fatals.push(error),
    });
    this.#life = { store, raft };
    for (const group of groups) {
      const stored = this.#disk.get(group);
      if (stored?.removed === true) this.#tombstones.set(group, stored);
      else this.#add(group, stored);
    }
    raft.start();
  }

  #add(group: GroupId, stored: StoredGroup | DurableGroup | undefined, placement?: number): void {
    const { agreement } = this.#surroundings;
    const app = new TestApplication(group, agreement, () => this.#monotonicMillis);
    this.#tombstones.delete(group);
    this.#apps.set(group, app);
    if (stored?.snapshot !== undefined && 'chunks' in stored) {
      restoreFrom(app, { meta: stored.snapshot, chunks: stored.chunks });
    }
    const voters = this.#voters;
    const placed = placement === undefined ? {} : { placement };
    this.raft.addGroup({ group, voters, preferredLeader: 0, app, stored, ...placed });
  }

  /** Removes the replica; its tombstone is written later. */
  remove(placement: number): void {
    const { raft } = this;
    raft.removeGroup(GROUP, placement, (tombstone) => {
      if (this.#life?.raft === raft) this.#tombstones.set(GROUP, tombstone);
    });
  }

  /** Starts a replica again that was removed. */
  comeBack(placement: number): void {
    assert(this.tombstone !== undefined, `node ${this.id} has no tombstone`);
    this.#add(GROUP, this.tombstone, placement);
  }

  /** The process dies. The write in flight was lost, or had reached the disk. */
  crash(fate: Fate = 'lost'): void {
    const { raft, store } = this.#alive;
    raft.stop();
    this.#disk = store.memory.crash(fate);
    this.#life = undefined;
    this.#tombstones.clear();
    this.#deferred.length = 0;
    this.#complete = undefined;
  }

  /** Runs one turn that is due. */
  turn(): void {
    watchdog.feed();
    this.#deferred.shift()?.();
    this.#expectAlive();
  }

  /** The write in flight reaches the disk, or fails; then the turn runs that this causes. */
  sync(): void {
    const complete = this.#complete;
    assert(complete !== undefined, `node ${this.id} writes nothing`);
    this.#complete = undefined;
    complete();
    this.turn();
  }

  #expectAlive(): void {
    if (this.fatals.length === 0 || this.mayEnd) return;
    throw new Error(`node ${this.id} ended`, { cause: this.fatals[0] });
  }

  /** Asks for a proposal; if the node leads, its next turn makes one entry of all requests so far. */
  propose(text: string, group = GROUP): void {
    this.appOf(group).pending.push(text);
    this.raft.requestProposal(group);
  }
}
