/**
 * A group whose members come and go: nodes with the real driver over disks in memory, started when a test says so,
 * with a network it can cut. Every act is checked: one leader per term, one state and one configuration per index,
 * and nothing that was applied anywhere is ever missing.
 */
import { uniformInt } from 'pure-rand/distribution/uniformInt';
import { xoroshiro128plus } from 'pure-rand/generator/xoroshiro128plus';
import { assert } from '../../../raft/assert.ts';
import { RAFT_DEFAULTS, type RandomBelow } from '../../../raft/core-state.ts';
import type { RaftStatus } from '../../../raft/status.ts';
import type { SnapshotSource, SnapshotTarget } from '../../../raft/driver/group-application.ts';
import type { MembershipChange } from '../../../raft/membership.ts';
import {
  type GroupApplication,
  MULTI_RAFT_DEFAULTS,
  MultiRaft,
  type MultiRaftOptions,
  type MembershipResult,
} from '../../../raft/driver/multi-raft.ts';
import type { PeerMessage } from '../../../raft/driver/peer-message.ts';
import type { Entry, GroupConfig, NodeId, SnapshotMeta, StoredGroup } from '../../../raft/types.ts';
import { GroupClock } from '../../../raft/driver/group-clock.ts';
import { type DurableGroup, type Fate, type MemoryDisk, MemoryStore } from '../../../storage/memory-store.ts';
import { restoreFrom, sourceOf, targetOf } from './whole-snapshots.ts';

export const GROUP = 1;
export const HEARTBEAT_TICKS = 2;
export const ELECTION_TICKS = 10;
const TICK_MILLIS = 10;

export const WORLD_OPTIONS: MultiRaftOptions = {
  ...MULTI_RAFT_DEFAULTS,
  raft: { ...RAFT_DEFAULTS, heartbeatTicks: HEARTBEAT_TICKS, electionTicks: ELECTION_TICKS },
  snapshotEveryBytes: 1 << 30,
  keepLogBytes: 0,
  snapshotWriteBytesMax: 300,
  streams: { outgoingMax: 4, silentTicksMax: 10 },
  balanceTicks: 1 << 30,
};

export function seededRandom(seed: number): RandomBelow {
  const generator = xoroshiro128plus(seed);
  return (bound) => uniformInt(generator, 0, bound - 1);
}

/** Seeds that are always the same, then some that never are; or the one of a failed run. */
export function seeds(fixed: number, fresh: number): number[] {
  const replayed = process.env['RAFT_SEED'];
  if (replayed !== undefined) return [Number(replayed)];
  const result = Array.from({ length: fixed }, (_, i) => i + 1);
  for (let i = 0; i < fresh; i += 1) result.push(1_000_000 + Math.floor(Math.random() * 1_000_000_000));
  return result;
}

class App implements GroupApplication {
  readonly clock: GroupClock;
  readonly #world: World;
  index = 0;
  digest = 0;
  config: GroupConfig | undefined;
  /** Every configuration this node was told of in this life. */
  readonly configs: GroupConfig[] = [];
  readonly pending: string[] = [];
  /** Commands applied in this life, as text. */
  readonly commands: string[] = [];

  constructor(world: World) {
    this.#world = world;
    const now = (): number => world.now;
    this.clock = new GroupClock(now, now);
  }

  takeProposal(): Uint8Array | undefined {
    return this.pending.length === 0 ? undefined : new TextEncoder().encode(this.pending.splice(0).join(','));
  }

  proposed(): void {}

  apply(entry: Entry): void {
    assert(entry.index === this.index + 1, `${entry.index} is applied after ${this.index}`);
    this.index = entry.index;
    let digest = Math.imul(this.digest ^ entry.term, 0x01000193) ^ entry.index;
    for (const byte of entry.data) digest = Math.imul(digest ^ byte, 0x01000193);
    this.digest = digest >>> 0;
    if (entry.kind === 'command') this.commands.push(new TextDecoder().decode(entry.data));
    this.#world.checkState(this.index, this.digest);
  }

  snapshot(): SnapshotSource {
    const { index, digest } = this;
    const bytes = new TextEncoder().encode(JSON.stringify({ index, digest, padding: 'x'.repeat(700) }));
    return sourceOf(
      Array.from({ length: Math.ceil(bytes.length / 100) }, (_, i) => bytes.slice(i * 100, i * 100 + 100)),
    );
  }

  restore(meta: SnapshotMeta): SnapshotTarget {
    return targetOf((chunks) => {
      const bytes = new Uint8Array(chunks.flatMap((chunk) => [...chunk]));
      const state = JSON.parse(new TextDecoder().decode(bytes)) as { index: number; digest: number };
      assert(state.index === meta.index, `the snapshot of ${meta.index} holds ${state.index}`);
      this.index = state.index;
      this.digest = state.digest;
      this.#world.checkState(this.index, this.digest);
    });
  }

  configChanged(config: GroupConfig): void {
    this.config = config;
    this.configs.push(config);
    if (this.index > 0) this.#world.checkConfig(this.index, config);
  }

  statusChanged(): void {}
}

export class Node {
  readonly id: NodeId;
  readonly #world: World;
  readonly #voters: readonly NodeId[];
  #disk: MemoryDisk = new Map();
  #store: MemoryStore | undefined;
  #raft: MultiRaft | undefined;
  #app: App;
  readonly #deferred: (() => void)[] = [];
  #complete: (() => void) | undefined;
  readonly fatals: unknown[] = [];
  /** What is left of the group on this node's disk, if nothing else is. */
  tombstone: StoredGroup | undefined;

  constructor(id: NodeId, world: World, voters: readonly NodeId[]) {
    this.id = id;
    this.#world = world;
    this.#voters = voters;
    this.#app = new App(world);
  }

  get isUp(): boolean {
    return this.#raft !== undefined;
  }
  get raft(): MultiRaft {
    assert(this.#raft !== undefined, `node ${this.id} is down`);
    return this.#raft;
  }
  get app(): App {
    return this.#app;
  }
  get status(): RaftStatus {
    const status = this.raft.status(GROUP);
    assert(status !== undefined, `node ${this.id} has no group`);
    return status;
  }
  /** It may have been removed. */
  get holdsGroup(): boolean {
    return this.#raft?.status(GROUP) !== undefined;
  }
  get isLeader(): boolean {
    return this.holdsGroup && this.status.role === 'leader';
  }
  get hasTurn(): boolean {
    return this.#deferred.length > 0;
  }
  get isWriting(): boolean {
    return this.#complete !== undefined;
  }
  get disk(): MemoryDisk {
    return this.#store?.disk() ?? this.#disk;
  }

  start(): void {
    const world = this.#world;
    const store = new MemoryStore({
      schedule: (fn) => {
        this.#complete = fn;
      },
      disk: this.#disk,
    });
    const life: { raft?: MultiRaft } = {};
    const raft = new MultiRaft({
      id: this.id,
      store,
      random: world.random,
      options: { ...WORLD_OPTIONS, ...world.options },
      defer: (turn) => this.#deferred.push(turn),
      send: (to, messages) => {
        if (this.#raft === life.raft) world.post(this.id, to, messages);
      },
      fatal: (error) => this.fatals.push(error),
    });
    life.raft = raft;
    this.#store = store;
    this.#raft = raft;
    const stored = this.#disk.get(GROUP);
    if (stored?.removed === true) this.tombstone = stored;
    else this.#add(stored, undefined);
    raft.start();
  }

  #add(stored: StoredGroup | DurableGroup | undefined, placement: number | undefined): void {
    this.tombstone = undefined;
    this.#app = new App(this.#world);
    if (stored?.snapshot !== undefined && 'chunks' in stored) {
      restoreFrom(this.#app, { meta: stored.snapshot, chunks: stored.chunks });
    }
    this.raft.addGroup({
      group: GROUP,
      voters: this.#voters,
      preferredLeader: 0,
      app: this.#app,
      stored,
      ...(placement !== undefined && { placement }),
    });
  }

  /** The replica goes; its tombstone comes later. */
  remove(placement: number): void {
    const { raft } = this;
    raft.removeGroup(GROUP, placement, (tombstone) => {
      if (this.#raft === raft) this.tombstone = tombstone;
    });
  }

  /** A replica that was removed begins anew. */
  comeBack(placement: number): void {
    assert(this.tombstone !== undefined, `node ${this.id} has no tombstone`);
    this.#add(this.tombstone, placement);
  }

  crash(fate: Fate = 'lost'): void {
    this.raft.stop();
    assert(this.#store !== undefined, 'a node that runs has a store');
    this.#disk = this.#store.crash(fate);
    this.#store = undefined;
    this.#raft = undefined;
    this.tombstone = undefined;
    this.#deferred.length = 0;
    this.#complete = undefined;
  }

  turn(): void {
    this.#deferred.shift()?.();
    if (this.fatals.length > 0) throw new Error(`node ${this.id} ended`, { cause: this.fatals[0] });
  }

  sync(): void {
    const complete = this.#complete;
    assert(complete !== undefined, `node ${this.id} writes nothing`);
    this.#complete = undefined;
    complete();
    if (this.fatals.length > 0) throw new Error(`node ${this.id} ended`, { cause: this.fatals[0] });
  }

  propose(text: string): void {
    this.#app.pending.push(text);
    this.raft.requestProposal(GROUP);
  }
}

export interface Parcel {
  readonly from: NodeId;
  readonly to: NodeId;
  readonly message: PeerMessage;
}

export class World {
  readonly options: Partial<MultiRaftOptions>;
  readonly random: RandomBelow;
  readonly nodes = new Map<NodeId, Node>();
  readonly queue: Parcel[] = [];
  /** Everything that was sent, lost or not. */
  readonly sent: Parcel[] = [];
  /** Does it arrive? */
  passes: (parcel: Parcel) => boolean = () => true;
  /** Nodes whose disk writes stay in flight. */
  readonly stalled = new Set<NodeId>();
  now = 1_700_000_000_000;
  readonly #digests = new Map<number, number>();
  readonly #configs = new Map<number, string>();
  readonly #leaders = new Map<number, NodeId>();
  appliedMax = 0;

  constructor(init: { voters: number; seed?: number; options?: Partial<MultiRaftOptions> }) {
    this.options = init.options ?? {};
    this.random = seededRandom(init.seed ?? 1);
    const ids = Array.from({ length: init.voters }, (_, i) => i + 1);
    for (const id of ids) this.add(id, ids);
  }

  /** Starts a node; one that joins later knows no voters. */
  add(id: NodeId, voters: readonly NodeId[] = []): Node {
    const node = new Node(id, this, voters);
    this.nodes.set(id, node);
    node.start();
    return node;
  }

  node(id: NodeId): Node {
    const node = this.nodes.get(id);
    assert(node !== undefined, `there is no node ${id}`);
    return node;
  }

  get up(): Node[] {
    return [...this.nodes.values()].filter(({ isUp }) => isUp);
  }

  /** The leader of the highest term. */
  get leader(): Node | undefined {
    return this.up.filter(({ isLeader }) => isLeader).sort((a, b) => b.status.term - a.status.term)[0];
  }

  checkState(index: number, digest: number): void {
    const known = this.#digests.get(index) ?? digest;
    assert(known === digest, `state-machine safety: states differ at ${index}`);
    this.#digests.set(index, digest);
    this.appliedMax = Math.max(this.appliedMax, index);
  }

  checkConfig(index: number, config: GroupConfig): void {
    const text = JSON.stringify(config);
    const known = this.#configs.get(index) ?? text;
    assert(known === text, `configurations differ at ${index}: ${known} and ${text}`);
    this.#configs.set(index, text);
  }

  checkLeaders(): void {
    for (const node of this.up) {
      if (!node.isLeader) continue;
      const { term } = node.status;
      const known = this.#leaders.get(term) ?? node.id;
      assert(known === node.id, `election safety: ${known} and ${node.id} lead term ${term}`);
      this.#leaders.set(term, node.id);
    }
  }

  post(from: NodeId, to: NodeId, messages: readonly PeerMessage[]): void {
    for (const message of messages) {
      const parcel = { from, to, message };
      this.sent.push(parcel);
      this.queue.push(parcel);
    }
  }

  deliver(parcel: Parcel): void {
    const node = this.nodes.get(parcel.to);
    if (node?.isUp === true && this.passes(parcel)) node.raft.receive([parcel.message]);
  }

  /** Everything that is due happens, until nothing is. */
  async settle(): Promise<void> {
    for (let round = 0; round < 10_000; round += 1) {
      await chunkReads();
      let isIdle = this.queue.length === 0;
      for (const parcel of this.queue.splice(0)) this.deliver(parcel);
      for (const node of this.up) {
        if (node.hasTurn) {
          isIdle = false;
          node.turn();
        }
        if (node.isWriting && !this.stalled.has(node.id)) {
          isIdle = false;
          node.sync();
        }
      }
      this.checkLeaders();
      if (isIdle) return;
    }
    throw new Error('the group does not come to rest');
  }

  async tick(count = 1): Promise<void> {
    for (let i = 0; i < count; i += 1) {
      this.now += TICK_MILLIS;
      for (const node of this.up) node.raft.tick();
      await this.settle();
    }
  }

  /** Waits until `condition` holds. */
  async until(condition: () => boolean, ticksMax = 20 * ELECTION_TICKS): Promise<void> {
    for (let i = 0; i < ticksMax && !condition(); i += 1) await this.tick();
    if (condition()) return;
    const states = this.up.map(
      (node) => `${node.id}: ${node.holdsGroup ? JSON.stringify(node.status) : 'removed'}`,
    );
    throw new Error(`it never came to pass; ${states.join('; ')}`);
  }

  /** A leader that has committed something of its own. */
  async elect(): Promise<Node> {
    await this.until(
      () => this.leader !== undefined && this.leader.status.applied === this.leader.status.lastIndex,
    );
    return this.#mustLead();
  }

  #mustLead(): Node {
    const { leader } = this;
    assert(leader !== undefined, 'there is a leader');
    return leader;
  }

  /** Lets `id` lead. */
  async lead(id: NodeId): Promise<Node> {
    const leader = await this.elect();
    if (leader.id === id) return leader;
    // Everybody else is deaf to elections for a while: nobody but `id` hears a timeout.
    const target = this.node(id);
    for (const node of this.up) if (node.id !== id) node.raft.peerLost(leader.id);
    target.raft.peerLost(leader.id);
    await this.until(() => {
      if (this.leader === undefined) return false;
      if (this.leader.id === id) return true;
      for (const node of this.up) if (node.id !== this.leader.id) node.raft.peerLost(this.leader.id);
      return false;
    }, 5_000);
    return this.elect();
  }

  /** Asks `node` for a change, for the placement in effect unless told otherwise; the result comes later. */
  change(
    node: Node,
    change: MembershipChange,
    epoch = node.status.config.epoch,
  ): { result?: MembershipResult } {
    const answer: { result?: MembershipResult } = {};
    node.raft.changeMembership(GROUP, change, epoch, (result) => {
      assert(answer.result === undefined, 'a change is answered once');
      answer.result = result;
    });
    return answer;
  }

  /** Changes the members through whoever leads, and waits until that is complete; it must work. */
  async changed(change: MembershipChange, epoch?: number): Promise<GroupConfig> {
    const leader = await this.elect();
    const answer = this.change(leader, change, epoch);
    await this.until(() => answer.result !== undefined);
    const { result } = answer;
    if (result?.ok !== true) throw new Error(`refused: ${result?.reason}`);
    return result.config;
  }

  /** Starts a node and makes it a voter. */
  async join(id: NodeId): Promise<void> {
    this.add(id);
    await this.changed([{ kind: 'addLearner', node: id }]);
    await this.until(() => this.node(id).app.index >= this.appliedMax);
    await this.changed([{ kind: 'promote', node: id }]);
  }

  /** Commits a command and waits until these nodes have applied it. */
  async commit(text: string, ids?: readonly NodeId[]): Promise<void> {
    const leader = await this.elect();
    leader.propose(text);
    const where = ids?.map((id) => this.node(id)) ?? [leader];
    await this.until(() =>
      where.every(({ app }) => app.commands.some((each) => each.split(',').includes(text))),
    );
  }

  /** Cuts these nodes off from all others; they still reach each other. */
  isolate(...ids: readonly NodeId[]): void {
    this.passes = ({ from, to }) => ids.includes(from) === ids.includes(to);
  }

  heal(): void {
    this.passes = () => true;
  }
}

/** Lets promised reads of the memory store come back. */
export async function chunkReads(): Promise<void> {
  for (let i = 0; i < 4; i += 1) await Promise.resolve();
}
