/**
 * A world of raft cores in one thread: virtual time, a network that loses, holds, repeats and reorders, and disks
 * whose writes can be left in flight. Nothing happens in it that a test did not ask for, and after everything
 * that happens the invariants are checked.
 */
import { RAFT_DEFAULTS, type RaftOptions, type RandomBelow } from '../../raft/core-state.ts';
import { RaftCore } from '../../raft/core.ts';
import type { Ready } from '../../raft/ready.ts';
import type { RaftStatus } from '../../raft/status.ts';
import type { GroupWrite } from '../../raft/driver/store.ts';
import type {
  Entry,
  GroupClock as Clock,
  LogPosition,
  Message,
  NodeId,
  SnapshotMeta,
  StoredGroup,
} from '../../raft/types.ts';
import { GroupClock } from '../../raft/driver/group-clock.ts';
import { type DurableGroup, MemoryStore, type Fate, type MemoryDisk } from '../../storage/memory-store.ts';
import { NEVER_PLACED } from './never-placed.ts';
import { Invariants, type ObservedNetwork, type ObservedNode } from './invariants.ts';
import { positionAt } from './log-view.ts';
import { seeded } from './seeded.ts';
import { watchdog } from './watchdog.ts';

export const GROUP = 1;

export const TICK_MILLIS = 10;
/** Small numbers, so that tests read well: a heartbeat every 2 ticks, an election after 10 to 20. */
export const TEST_OPTIONS: RaftOptions = { ...RAFT_DEFAULTS, heartbeatTicks: 2, electionTicks: 10 };

/** A group clock of a test may also want to hear what the core does not pass on. */
export interface TestClock extends Clock {
  heard?(term: number, timeMillis: number): void;
}

export interface NetworkOptions {
  readonly nodes: number;
  readonly seed?: number;
  readonly raft?: Partial<RaftOptions>;
  /** False: writes stay in flight until `sync`. Default true. */
  readonly autoSync?: boolean;
  /** Take a snapshot after this many applied entries, and keep that many before it. Default: never. */
  readonly snapshotEvery?: number;
  readonly keepEntries?: number;
  /** A write takes entries until they cost this much. Default: all there are. */
  readonly writeCostMax?: number;
  /** What nodes find on their disks at start. */
  readonly stored?: ReadonlyMap<NodeId, StoredGroup>;
  readonly newClock?: (monotonicMillis: () => number, wallMillis: () => number) => TestClock;
}

export interface Envelope {
  readonly message: Message;
  /** The sender's life in which it was sent: a snapshot's fate is reported only to that. */
  readonly sender: RaftCore;
}

interface Snapshot {
  readonly meta: SnapshotMeta;
  readonly chunks: readonly Uint8Array[];
}

/** The driver stages chunks before the core hears of a snapshot; here they are found by its meta. */
const CHUNKS = new WeakMap<SnapshotMeta, readonly Uint8Array[]>();

export function withChunks({ meta, chunks }: Snapshot): SnapshotMeta {
  CHUNKS.set(meta, chunks);
  return meta;
}

interface Flight {
  readonly ready: Ready | undefined;
  readonly snapshot: Snapshot | undefined;
  readonly compactTo: number;
}

/** The state machine of these tests: how much was applied, and a digest of it. */
interface Machine {
  index: number;
  digest: number;
}

export class TestNode implements ObservedNode {
  readonly id: NodeId;
  readonly #network: Network;
  /** Real time of the start of the monotonic clock; differs for each life. */
  #bootMillis = 0;
  #core: RaftCore | undefined;
  #clock: TestClock | undefined;
  #store: MemoryStore;
  #complete: (() => void) | undefined;
  #flight: Flight | undefined;
  #disk: MemoryDisk;
  wallOffsetMillis = 0;
  /** Parts per million by which this node's monotonic clock runs fast. */
  driftPpm = 0;
  /** For how long this node's monotonic clock stood still, as that of a paused virtual machine does. */
  pausedMillis = 0;
  machine: Machine = { index: 0, digest: 0 };
  /** What was applied in this life, without what came in a snapshot. */
  applied: Entry[] = [];
  snapshot: Snapshot | undefined;

  constructor(id: NodeId, network: Network, stored: StoredGroup | undefined) {
    this.id = id;
    this.#network = network;
    this.#disk = new Map(stored === undefined ? [] : [[GROUP, { ...stored, chunks: [] }]]);
    this.#store = this.#open();
  }

  get isUp(): boolean {
    return this.#core !== undefined;
  }

  get core(): RaftCore {
    if (this.#core === undefined) throw new Error(`node ${this.id} is down`);
    return this.#core;
  }

  get clock(): TestClock {
    if (this.#clock === undefined) throw new Error(`node ${this.id} is down`);
    return this.#clock;
  }

  get isWriting(): boolean {
    return this.#flight !== undefined;
  }

  /** What a crash now would leave, the write in flight lost. */
  get stored(): DurableGroup | undefined {
    return this.#disk.get(GROUP);
  }

  #open(): MemoryStore {
    const schedule = (fn: () => void): void => {
      this.#complete = fn;
    };
    return new MemoryStore({ schedule, disk: this.#disk });
  }

  start(): void {
    const network = this.#network;
    const { stored } = this;
    this.#bootMillis = network.now - 1_000 * (1 + network.random(1_000));
    const monotonic = (): number =>
      (network.now - this.#bootMillis - this.pausedMillis) * (1 + this.driftPpm / 1_000_000);
    const wall = (): number => network.now + this.wallOffsetMillis;
    this.#clock = network.options.newClock?.(monotonic, wall) ?? new GroupClock(monotonic, wall);
    this.snapshot =
      stored?.snapshot === undefined ? undefined : { meta: stored.snapshot, chunks: stored.chunks };
    this.machine = this.snapshot === undefined ? { index: 0, digest: 0 } : decode(this.snapshot);
    this.applied = [];
    this.#core = new RaftCore({
      id: this.id,
      voters: network.ids,
      stored,
      clock: this.#clock,
      random: network.random,
      options: { ...TEST_OPTIONS, ...network.options.raft },
      isPreferred: false,
    });
    network.invariants.started(this);
  }

  /** The process dies. The write in flight was lost, or had reached the disk. */
  crash(fate: Fate = 'lost'): void {
    this.#disk = this.#store.crash(fate);
    this.#core = undefined;
    this.#clock = undefined;
    this.#flight = undefined;
    this.#complete = undefined;
    this.#store = this.#open();
    this.#network.invariants.diskChanged(this);
  }

  /** Lets go of everything that needs no waiting, and starts the next write. */
  pump(): void {
    for (let round = 0; ; round += 1) {
      if (round > 1_000) throw new Error(`node ${this.id} always has something more to write`);
      for (const message of this.core.takeMessages()) this.#network.post(this, message);
      const moved = this.#apply();
      const wrote = this.#flight === undefined && this.#write();
      if (!moved && !wrote) return;
    }
  }

  #apply(): boolean {
    const entries = this.core.applicable(1 << 20);
    for (const entry of entries) {
      this.machine = { index: entry.index, digest: digestOf(this.machine.digest, entry) };
      this.applied.push(entry);
      this.core.appliedTo(entry.index);
      this.#network.invariants.applied(this, entry);
    }
    return entries.length > 0;
  }

  /** Returns true if it had something to do. */
  #write(): boolean {
    const ready = this.core.ready(this.#network.options.writeCostMax);
    if (ready !== undefined && !ready.mustWrite) this.#release({ ready, snapshot: undefined, compactTo: 0 });
    const toWrite = ready?.mustWrite === true ? ready : undefined;
    const snapshot = toWrite?.install === undefined ? this.#snapshotDue() : undefined;
    if (toWrite === undefined && snapshot === undefined) return ready !== undefined;
    const keep = this.#network.options.keepEntries ?? 0;
    const compactTo =
      snapshot === undefined ? 0 : Math.max(this.core.logBase.index, snapshot.meta.index - keep);
    this.#flight = { ready: toWrite, snapshot, compactTo };
    this.#store.write([this.#groupWrite(toWrite, snapshot, compactTo)], (error) => {
      if (error !== undefined) throw error;
    });
    if (this.#network.options.autoSync ?? true) this.sync();
    return true;
  }

  #groupWrite(ready: Ready | undefined, snapshot: Snapshot | undefined, compactTo: number): GroupWrite {
    const install = ready?.install?.meta;
    const { meta, chunks = [] } = install === undefined ? { ...snapshot } : readBack(install);
    return {
      group: GROUP,
      entries: ready?.entries ?? [],
      ...(ready !== undefined && { hardState: ready.hardState }),
      ...(meta !== undefined && { stage: { index: meta.index, first: 0, chunks } }),
      ...(install !== undefined && { install }),
      ...(snapshot !== undefined && {
        snapshot: snapshot.meta,
        compactTo: positionAt(this.core, compactTo),
      }),
    };
  }

  #snapshotDue(): Snapshot | undefined {
    const { snapshotEvery } = this.#network.options;
    if (snapshotEvery === undefined) return undefined;
    const { index } = this.machine;
    if (index < (this.snapshot?.meta.index ?? 0) + snapshotEvery) return undefined;
    return encode(this.machine, positionAt(this.core, index), this.core.voters);
  }

  /** The write in flight reaches the disk. */
  sync(): void {
    const flight = this.#flight;
    const complete = this.#complete;
    if (flight === undefined || complete === undefined) throw new Error(`node ${this.id} writes nothing`);
    complete();
    this.#flight = undefined;
    this.#complete = undefined;
    this.#disk = this.#store.disk();
    this.#network.invariants.diskChanged(this);
    this.#release(flight);
    this.#network.invariants.observe(this);
    if (!(this.#network.options.autoSync ?? true)) this.pump();
  }

  #release({ ready, snapshot, compactTo }: Flight): void {
    if (snapshot !== undefined) {
      this.snapshot = snapshot;
      this.core.compact(compactTo);
    }
    if (ready === undefined) return;
    const { install } = ready;
    if (install !== undefined) {
      this.snapshot = readBack(install.meta);
      this.machine = decode(this.snapshot);
      this.#network.invariants.restored(this);
    }
    this.core.advance(ready);
    for (const message of ready.afterSync) if (message.to !== this.id) this.#network.post(this, message);
  }
}

export class Network implements ObservedNetwork {
  readonly options: NetworkOptions;
  readonly ids: readonly NodeId[];
  readonly random: RandomBelow;
  readonly invariants: Invariants;
  readonly #nodes = new Map<NodeId, TestNode>();
  readonly #cut = new Set<string>();
  #hold: ((message: Message) => boolean) | undefined;
  /** Real time in milliseconds. */
  now = 1_700_000_000_000;
  /** Sent and not delivered yet, oldest first. */
  readonly queue: Envelope[] = [];
  /** Held back by `hold`, in the order they were sent. */
  readonly held: Envelope[] = [];
  /** Everything that was ever sent and not refused by a cut link. */
  readonly sent: Message[] = [];

  constructor(options: NetworkOptions) {
    this.options = options;
    this.ids = Array.from({ length: options.nodes }, (_, i) => i + 1);
    this.random = seeded(options.seed ?? 1);
    this.invariants = new Invariants(this);
    for (const id of this.ids) this.#nodes.set(id, new TestNode(id, this, options.stored?.get(id)));
    for (const node of this.nodes) {
      node.start();
      node.pump();
    }
  }

  get nodes(): TestNode[] {
    return [...this.#nodes.values()];
  }

  get up(): TestNode[] {
    return this.nodes.filter((node) => node.isUp);
  }

  node(id: NodeId): TestNode {
    const node = this.#nodes.get(id);
    if (node === undefined) throw new Error(`there is no node ${id}`);
    return node;
  }

  core(id: NodeId): RaftCore {
    return this.node(id).core;
  }

  /** What a node says of itself, for comparisons: a core itself has nothing to print. */
  status(id: NodeId): RaftStatus & { readonly id: NodeId } {
    return { id, ...this.core(id).status() };
  }

  get leaderStatus(): (RaftStatus & { readonly id: NodeId }) | undefined {
    const { leader } = this;
    return leader && this.status(leader.id);
  }

  /** The leader of the highest term, if there is one. */
  get leader(): RaftCore | undefined {
    const leaders = this.up.map((node) => node.core).filter((core) => core.role === 'leader');
    return leaders.sort((a, b) => b.term - a.term)[0];
  }

  /** Does something to one node and lets the consequences leave it. */
  act<T>(id: NodeId, action: (core: RaftCore) => T): T {
    const node = this.node(id);
    watchdog.feed();
    const result = action(node.core);
    this.invariants.observe(node);
    node.pump();
    this.invariants.observe(node);
    return result;
  }

  propose(id: NodeId, text: string): Entry | undefined {
    return this.act(id, (core) => core.propose(new TextEncoder().encode(text)));
  }

  /** Proposes on `id`, which must lead, and lets the cluster settle. */
  commit(id: NodeId, text: string): Entry {
    const entry = this.propose(id, text);
    if (entry === undefined) throw new Error(`node ${id} refused '${text}'`);
    this.settle();
    return entry;
  }

  /** Makes `id` the leader, if the others it can reach let it: nobody protects an earlier leader any more. */
  elect(id: NodeId): void {
    for (const node of this.up) node.core.forgetLeader(1_000_000);
    this.act(id, (core) => core.campaign());
    this.settle();
  }

  /** Time passes for one node alone. */
  tick(id: NodeId, count = 1): void {
    for (let i = 0; i < count; i += 1) this.act(id, (core) => core.tick());
  }

  /** Time passes for everybody, and everything sent arrives. */
  tickAll(count = 1): void {
    for (let i = 0; i < count; i += 1) {
      this.now += TICK_MILLIS;
      for (const node of this.up) this.tick(node.id);
      this.settle();
    }
  }

  post(from: TestNode, message: Message): void {
    this.invariants.sending(from, message);
    let sent = message;
    if (message.type === 'snapshot') {
      const { snapshot } = from;
      if (snapshot === undefined || this.isCut(from.id, message.to)) {
        from.core.snapshotDone(message.to, false);
        return;
      }
      sent = { ...message, meta: withChunks(snapshot) };
    }
    if (this.isCut(from.id, message.to)) return;
    this.sent.push(sent);
    const envelope = { message: sent, sender: from.core };
    (this.#hold?.(sent) === true ? this.held : this.queue).push(envelope);
  }

  /** Delivers everything on the way, and what that causes, until nothing is on the way. */
  settle(): void {
    for (let count = 0; this.queue.length > 0; count += 1) {
      if (count > 200_000) throw new Error('the cluster does not come to rest');
      const envelope = this.queue.shift();
      if (envelope !== undefined) this.deliver(envelope);
    }
  }

  deliver({ message, sender }: Envelope): void {
    const target = this.node(message.to);
    const arrives = target.isUp && !this.isCut(message.from, message.to);
    if (arrives) {
      this.act(message.to, (core) => core.step(message));
      if ('timeMillis' in message && message.term === target.core.term) {
        target.clock.heard?.(message.term, message.timeMillis);
      }
    }
    if (message.type === 'snapshot') this.snapshotFate(sender, message.to, arrives);
  }

  /** Takes a message off the network. */
  lose({ message, sender }: Envelope): void {
    if (message.type === 'snapshot') this.snapshotFate(sender, message.to, false);
  }

  snapshotFate(sender: RaftCore, to: NodeId, arrived: boolean): void {
    const node = this.node(sender.id);
    if (node.isUp && node.core === sender) this.act(node.id, (core) => core.snapshotDone(to, arrived));
  }

  isCut(from: NodeId, to: NodeId): boolean {
    return this.#cut.has(`${from}>${to}`);
  }

  /** Nothing gets from `from` to `to` any more, what is on its way included. */
  cutOneWay(from: NodeId, to: NodeId): void {
    this.#cut.add(`${from}>${to}`);
  }

  cut(a: NodeId, b: NodeId): void {
    this.cutOneWay(a, b);
    this.cutOneWay(b, a);
  }

  isolate(id: NodeId): void {
    for (const other of this.ids) if (other !== id) this.cut(id, other);
  }

  /** Only nodes on the same side reach each other. */
  partition(...sides: readonly (readonly NodeId[])[]): void {
    this.heal();
    for (const side of sides) {
      for (const id of side) {
        for (const other of this.ids) if (!side.includes(other)) this.cut(id, other);
      }
    }
  }

  heal(): void {
    this.#cut.clear();
  }

  /** From now on, messages for which `predicate` holds stay in `held`. */
  hold(predicate: (message: Message) => boolean): void {
    this.#hold = predicate;
  }

  /** Stops holding; what was held is on its way again, in front of everything else. */
  release(): void {
    this.#hold = undefined;
    this.queue.unshift(...this.held.splice(0));
  }

  crash(id: NodeId, fate: Fate = 'lost'): void {
    this.node(id).crash(fate);
  }

  restart(id: NodeId): void {
    this.node(id).start();
    this.act(id, () => {});
  }
}

/** A stored log of entries with these terms; group time is 10 ms an index. */
export function storedLog(
  terms: readonly number[],
  hardState: Partial<StoredGroup['hardState']> = {},
): StoredGroup {
  const entries = terms.map((term, i): Entry => ({
    index: i + 1,
    term,
    timeMillis: (i + 1) * 10,
    kind: 'command',
    data: new TextEncoder().encode(`${term}.${i + 1}`),
  }));
  return {
    ...NEVER_PLACED,
    hardState: { term: terms.at(-1) ?? 0, vote: 0, commit: 0, ...hardState },
    base: { index: 0, term: 0, timeMillis: 0 },
    entries,
  };
}

function readBack(meta: SnapshotMeta): Snapshot {
  const chunks = CHUNKS.get(meta);
  if (chunks === undefined) throw new Error(`nobody knows the chunks of snapshot ${meta.index}`);
  return { meta, chunks };
}

function digestOf(before: number, entry: Entry): number {
  let digest = Math.imul(before ^ entry.term, 0x01000193) ^ entry.index;
  for (const byte of entry.data) digest = Math.imul(digest ^ byte, 0x01000193);
  return digest >>> 0;
}

function encode(machine: Machine, at: LogPosition, voters: readonly NodeId[]): Snapshot {
  const chunk = new TextEncoder().encode(JSON.stringify(machine));
  const { index, term, timeMillis } = at;
  const meta: SnapshotMeta = { index, term, timeMillis, voters, chunkCount: 1, byteLength: chunk.length };
  return { meta, chunks: [chunk] };
}

function decode(snapshot: Snapshot): Machine {
  const machine: unknown = JSON.parse(new TextDecoder().decode(snapshot.chunks[0]));
  return machine as Machine;
}
