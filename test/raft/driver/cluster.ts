/**
 * Nodes that run the real driver over a disk in memory: for tests of what happens between cores, disk and
 * snapshot streams. Turns, disk writes and messages happen one at a time, when the test says so.
 */
import { assert } from '../../../raft/assert.ts';
import { RAFT_DEFAULTS, type RandomBelow } from '../../../raft/core-state.ts';
import type { RaftStatus } from '../../../raft/status.ts';
import type { SnapshotSource, SnapshotTarget } from '../../../raft/driver/group-application.ts';
import {
  type GroupApplication,
  MULTI_RAFT_DEFAULTS,
  MultiRaft,
  type MultiRaftOptions,
} from '../../../raft/driver/multi-raft.ts';
import type { PeerMessage } from '../../../raft/driver/peer-message.ts';
import type { GroupWrite, LogStore } from '../../../raft/driver/store.ts';
import type { Entry, GroupId, NodeId, SnapshotMeta } from '../../../raft/types.ts';
import { GroupClock } from '../../../raft/driver/group-clock.ts';
import { type Fate, type MemoryDisk, MemoryStore } from '../../../storage/memory-store.ts';
import { restoreFrom, sourceOf, targetOf } from './whole-snapshots.ts';
import { seeded } from '../seeded.ts';
import { watchdog } from '../watchdog.ts';

export const TICK_MILLIS = 10;
export const CLUSTER_OPTIONS: MultiRaftOptions = {
  ...MULTI_RAFT_DEFAULTS,
  raft: { ...RAFT_DEFAULTS, heartbeatTicks: 2, electionTicks: 10 },
  snapshotEveryBytes: 1_000,
  keepLogBytes: 300,
  snapshotWriteBytesMax: 200,
  streams: { outgoingMax: 2, silentTicksMax: 10 },
  // Tests say themselves who leads.
  balanceTicks: 1_000_000_000,
};

export interface ClusterOptions {
  readonly nodes: number;
  readonly groups?: number;
  readonly seed?: number;
  readonly driver?: Partial<MultiRaftOptions>;
}

/** Counts and digests what it applies; its snapshot is padded, so that it takes several chunks. */
export class TestApplication implements GroupApplication {
  readonly clock: GroupClock;
  readonly #member: Member;
  readonly #group: GroupId;
  index = 0;
  digest = 0;
  readonly pending: string[] = [];
  /** Everything applied in this life. */
  readonly applied: Entry[] = [];
  /** What this node proposed: the place it got, or undefined if refused. */
  readonly proposals: (Entry | undefined)[] = [];
  status: { readonly isLeader: boolean; readonly term: number; readonly leader: NodeId } = {
    isLeader: false,
    term: 0,
    leader: 0,
  };

  constructor(member: Member, group: GroupId) {
    this.#member = member;
    this.#group = group;
    const { cluster } = member;
    this.clock = new GroupClock(
      () => cluster.now,
      () => cluster.now,
    );
  }

  takeProposal(): Uint8Array | undefined {
    if (this.pending.length === 0) return undefined;
    return new TextEncoder().encode(JSON.stringify(this.pending.splice(0)));
  }

  proposed(entry: Entry | undefined): void {
    this.proposals.push(entry);
  }

  apply(entry: Entry): void {
    assert(entry.index === this.index + 1, `${entry.index} applied after ${this.index}`);
    this.index = entry.index;
    let digest = Math.imul(this.digest ^ entry.term, 0x01000193) ^ entry.index;
    for (const byte of entry.data) digest = Math.imul(digest ^ byte, 0x01000193);
    this.digest = digest >>> 0;
    this.applied.push(entry);
    this.#member.cluster.check(this.#group, this);
  }

  snapshot(): SnapshotSource {
    const { index, digest } = this;
    const text = JSON.stringify({ index, digest, padding: 'x'.repeat(500 + (index % 7) * 100) });
    const bytes = new TextEncoder().encode(text);
    const chunks: Uint8Array[] = [];
    for (let from = 0; from < bytes.length; from += 100) chunks.push(bytes.slice(from, from + 100));
    return sourceOf(chunks);
  }

  /** At which step snapshots turn out to be unsound. */
  unsoundAt: 'add' | 'complete' | undefined;
  /** States that are being built beside the present one. */
  building = 0;

  restore(meta: SnapshotMeta): SnapshotTarget {
    const target = this.#restore(meta);
    this.building += 1;
    return {
      add: (chunk) => {
        if (this.unsoundAt === 'add') throw new RangeError('this is no chunk of a snapshot');
        target.add(chunk);
      },
      complete: () => {
        if (this.unsoundAt === 'complete') throw new RangeError('this is no whole snapshot');
        target.complete();
      },
      install: () => {
        this.building -= 1;
        target.install();
      },
    };
  }

  #restore(meta: SnapshotMeta): SnapshotTarget {
    return targetOf((chunks) => {
      const bytes = chunks.flatMap((chunk) => [...chunk]);
      const state: unknown = JSON.parse(new TextDecoder().decode(new Uint8Array(bytes)));
      const { index, digest } = state as { index: number; digest: number };
      assert(index === meta.index, `the snapshot of ${meta.index} holds ${index}`);
      this.index = index;
      this.digest = digest;
      this.#member.cluster.check(this.#group, this);
    });
  }

  statusChanged(status: TestApplication['status']): void {
    this.status = status;
  }
}

export class Member {
  readonly id: NodeId;
  readonly cluster: Cluster;
  readonly apps = new Map<GroupId, TestApplication>();
  readonly fatals: unknown[] = [];
  /** Snapshots of leaders that it took for unsound. */
  readonly refused: unknown[] = [];
  /** Reads of chunks wait while this is set. */
  readsHeld: (() => void)[] | undefined;
  /** Every batch given to the disk in this life. */
  readonly writes: (readonly GroupWrite[])[] = [];
  #disk: MemoryDisk = new Map();
  #store: MemoryStore | undefined;
  #raft: MultiRaft | undefined;
  readonly #deferred: (() => void)[] = [];
  #complete: (() => void) | undefined;

  constructor(id: NodeId, cluster: Cluster) {
    this.id = id;
    this.cluster = cluster;
  }

  get isUp(): boolean {
    return this.#raft !== undefined;
  }

  get raft(): MultiRaft {
    assert(this.#raft !== undefined, `node ${this.id} is down`);
    return this.#raft;
  }

  get store(): MemoryStore {
    assert(this.#store !== undefined, `node ${this.id} is down`);
    return this.#store;
  }

  get isWriting(): boolean {
    return this.#complete !== undefined;
  }

  get hasTurn(): boolean {
    return this.#deferred.length > 0;
  }

  get disk(): MemoryDisk {
    return this.#store?.disk() ?? this.#disk;
  }

  app(group: GroupId): TestApplication {
    const app = this.apps.get(group);
    assert(app !== undefined, `node ${this.id} has no group ${group}`);
    return app;
  }

  status(group: GroupId): RaftStatus {
    const status = this.raft.status(group);
    assert(status !== undefined, `node ${this.id} has no group ${group}`);
    return status;
  }

  start(): void {
    const { cluster } = this;
    this.writes.length = 0;
    this.fatals.length = 0;
    this.apps.clear();
    const store = new MemoryStore({
      schedule: (fn) => {
        this.#complete = fn;
      },
      disk: this.#disk,
    });
    const life: { raft?: MultiRaft } = {};
    const raft = new MultiRaft({
      id: this.id,
      store: this.#recorded(store),
      random: cluster.random,
      options: { ...CLUSTER_OPTIONS, ...cluster.options.driver },
      defer: (turn) => this.#deferred.push(turn),
      send: (to, messages) => {
        assert(this.fatals.length === 0, `node ${this.id} speaks after its end`);
        if (this.#raft === life.raft) cluster.post(this.id, to, messages);
      },
      snapshotRefused: (_group, _meta, error) => this.refused.push(error),
      fatal: (error) => this.fatals.push(error),
    });
    life.raft = raft;
    for (const group of cluster.groups) {
      const app = new TestApplication(this, group);
      this.apps.set(group, app);
      const stored = this.#disk.get(group);
      if (stored?.snapshot !== undefined) restoreFrom(app, { meta: stored.snapshot, chunks: stored.chunks });
      raft.addGroup({ group, voters: cluster.ids, preferredLeader: 0, app, stored });
    }
    raft.start();
    this.#store = store;
    this.#raft = raft;
  }

  #recorded(store: MemoryStore): LogStore {
    return {
      load: (group) => store.load(group),
      write: (writes, done) => {
        this.writes.push(writes);
        store.write(writes, done);
      },
      get hasGarbage() {
        return store.hasGarbage;
      },
      readSnapshotChunk: async (group, index, chunk) => {
        const { readsHeld } = this;
        if (readsHeld !== undefined) await new Promise<void>((resolve) => readsHeld.push(resolve));
        return store.readSnapshotChunk(group, index, chunk);
      },
      close: () => store.close(),
    };
  }

  crash(fate: Fate = 'lost'): void {
    this.raft.stop();
    this.#disk = this.store.crash(fate);
    this.#raft = undefined;
    this.#store = undefined;
    this.#deferred.length = 0;
    this.#complete = undefined;
  }

  /** Runs one turn that is due. */
  turn(): void {
    watchdog.feed();
    this.#deferred.shift()?.();
  }

  /** The write in flight reaches the disk, or fails. */
  sync(): void {
    const complete = this.#complete;
    assert(complete !== undefined, `node ${this.id} writes nothing`);
    this.#complete = undefined;
    complete();
  }

  /** The reads that wait are done, and those to come are quick again. */
  releaseReads(): void {
    const held = this.readsHeld ?? [];
    this.readsHeld = undefined;
    for (const release of held) release();
  }

  propose(group: GroupId, text: string): void {
    this.app(group).pending.push(text);
    this.raft.requestProposal(group);
  }
}

export interface Parcel {
  readonly from: NodeId;
  readonly to: NodeId;
  readonly message: PeerMessage;
}

export class Cluster {
  readonly options: ClusterOptions;
  readonly ids: readonly NodeId[];
  readonly groups: readonly GroupId[];
  readonly random: RandomBelow;
  readonly members: readonly Member[];
  readonly queue: Parcel[] = [];
  /** Everything that was sent, before anything was lost. */
  readonly sent: Parcel[] = [];
  /** 0: lost, 1: delivered, 2: delivered twice. */
  fate: (parcel: Parcel) => number = () => 1;
  now = 1_700_000_000_000;
  readonly #digests = new Map<string, number>();
  /** By group: the last index that was applied anywhere, ever. */
  readonly appliedMax = new Map<GroupId, number>();

  constructor(options: ClusterOptions) {
    this.options = options;
    this.random = seeded(options.seed ?? 1);
    this.ids = Array.from({ length: options.nodes }, (_, i) => i + 1);
    this.groups = Array.from({ length: options.groups ?? 1 }, (_, i) => i + 1);
    this.members = this.ids.map((id) => new Member(id, this));
    for (const member of this.members) member.start();
  }

  member(id: NodeId): Member {
    const member = this.members[id - 1];
    assert(member !== undefined, `there is no node ${id}`);
    return member;
  }

  get up(): Member[] {
    return this.members.filter((member) => member.isUp);
  }

  leaderOf(group: GroupId): Member | undefined {
    const leaders = this.up.filter((member) => member.status(group).role === 'leader');
    return leaders.sort((a, b) => b.status(group).term - a.status(group).term)[0];
  }

  /** State-machine safety: whoever applied up to an index has the same state there. */
  check(group: GroupId, app: TestApplication): void {
    const key = `${group}:${app.index}`;
    const known = this.#digests.get(key) ?? app.digest;
    assert(known === app.digest, `group ${group}: states differ at ${app.index}`);
    this.#digests.set(key, app.digest);
    this.appliedMax.set(group, Math.max(this.appliedMax.get(group) ?? 0, app.index));
  }

  post(from: NodeId, to: NodeId, messages: readonly PeerMessage[]): void {
    for (const message of messages) {
      const parcel = { from, to, message };
      this.sent.push(parcel);
      for (let i = this.fate(parcel); i > 0; i -= 1) this.queue.push(parcel);
    }
  }

  deliver({ to, message }: Parcel): void {
    const member = this.member(to);
    if (member.isUp) member.raft.receive([message]);
  }

  /** Everything that is due happens, disk writes included, until nothing is. */
  async settle(): Promise<void> {
    for (let round = 0; round < 10_000; round += 1) {
      await reads();
      let isIdle = this.queue.length === 0;
      for (const parcel of this.queue.splice(0)) this.deliver(parcel);
      for (const member of this.up) {
        if (member.hasTurn) {
          isIdle = false;
          member.turn();
        }
        if (member.isWriting) {
          isIdle = false;
          member.sync();
        }
      }
      if (isIdle) return;
    }
    throw new Error('the cluster does not come to rest');
  }

  async tickAll(count = 1): Promise<void> {
    for (let i = 0; i < count; i += 1) {
      this.now += TICK_MILLIS;
      for (const member of this.up) member.raft.tick();
      await this.settle();
    }
  }

  async electAny(group: GroupId): Promise<Member> {
    for (let i = 0; i < 200; i += 1) {
      await this.tickAll();
      const leader = this.leaderOf(group);
      if (leader !== undefined && leader.status(group).applied > 0) return leader;
    }
    throw new Error(`group ${group} elects nobody`);
  }

  /** Loses everything to and from these nodes. */
  isolate(...ids: readonly NodeId[]): void {
    this.fate = ({ from, to }) => (ids.includes(from) === ids.includes(to) ? 1 : 0);
  }

  heal(): void {
    this.fate = () => 1;
  }
}

/** Lets promised reads of the memory store come back. */
export async function reads(): Promise<void> {
  for (let i = 0; i < 8; i += 1) await Promise.resolve();
}
