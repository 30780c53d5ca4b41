/**
 * The common part of the random histories of drivers: random ticks and turns, slow disks, lost, late, repeated and
 * reordered messages, crashes, partitions. The probabilities differ from seed to seed. Each test adds its own requests
 * and invariants.
 */
import type { RandomBelow } from '../../../raft/core-state.ts';
import type { MultiRaftOptions } from '../../../raft/driver/multi-raft.ts';
import { chunkReads, type Cluster } from './cluster.ts';
import type { Node } from './node.ts';
import type { Parcel } from './parcel.ts';

/** Short timeouts and small bounds, drawn for each history. */
export function drawOptions(random: RandomBelow): Partial<MultiRaftOptions> {
  return {
    raft: {
      heartbeatTicks: 1,
      electionTicks: 5,
      appendBytesMax: 1 + random(400),
      inflight: { messagesMax: 1 + random(8), bytesMax: 4_000 },
      uncommittedBytesMax: 4_000,
    },
    snapshotEveryBytes: random(2) === 0 ? 1 << 30 : 200 + random(1_000),
    keepLogBytes: random(300),
    snapshotWriteBytesMax: 50 + random(400),
    writeBytesMax: random(2) === 0 ? 1 << 20 : 1 + random(3_000),
    applyBytesMax: 1 + random(200),
    streams: { outgoingMax: 1 + random(3), silentTicksMax: 3 + random(10) },
  };
}

/** The hooks that a test can set. */
export interface Witness {
  /** True if the node may start again. Default: all may. */
  mayStart?(node: Node): boolean;
  crashed?(node: Node): void;
}

export class Chaos {
  readonly #cluster: Cluster;
  readonly #random: RandomBelow;
  readonly #witness: Witness;
  readonly #tickPercent: number;
  readonly #syncPercent: number;
  readonly #lossPercent: number;
  readonly #latePercent: number;
  readonly #repeatPercent: number;
  readonly #reorderPercent: number;
  readonly #faultPerMille: number;
  /** Arrive long after they were sent, if ever. */
  readonly #late: Parcel[] = [];
  #proposals = 0;

  constructor(cluster: Cluster, random: RandomBelow, witness: Witness = {}) {
    this.#cluster = cluster;
    this.#random = random;
    this.#witness = witness;
    this.#tickPercent = 40 + random(20);
    this.#syncPercent = 5 + random(60);
    this.#lossPercent = random(15);
    this.#latePercent = random(4);
    this.#repeatPercent = random(10);
    this.#reorderPercent = random(4) === 0 ? random(40) : 0;
    this.#faultPerMille = random(50);
  }

  pick<T>(from: readonly T[]): T | undefined {
    return from[this.#random(Math.max(1, from.length))];
  }

  /** Nodes that are down and may start again. */
  get down(): Node[] {
    const mayStart = (node: Node): boolean => this.#witness.mayStart?.(node) ?? true;
    return [...this.#cluster.nodes.values()].filter((node) => !node.isUp && mayStart(node));
  }

  /** A leader; now and then one that does not know that it was deposed. */
  anyLeader(group: number): Node | undefined {
    return this.pick(this.#cluster.up.filter((node) => node.leads(group)));
  }

  /** `act` adds the test's own events to each step. */
  async run(steps: number, act: () => void = () => undefined): Promise<void> {
    for (let i = 0; i < steps; i += 1) {
      await chunkReads();
      this.#step();
      act();
      if (this.#random(1_000) < this.#faultPerMille) this.#fault();
      if (this.#random(100) < 4) this.pick(this.down)?.start();
      this.#cluster.checkLeaders();
    }
  }

  #step(): void {
    const cluster = this.#cluster;
    const random = this.#random;
    cluster.now += random(4);
    if (random(100) < this.#tickPercent) this.pick(cluster.up)?.raft.tick();
    // Turns come soon, writes complete at random.
    for (const node of cluster.up) {
      if (node.hasTurn && random(100) < 70) node.turn();
      if (node.isWriting && random(100) < this.#syncPercent) node.sync();
    }
    for (let count = cluster.up.length * 2; count > 0 && cluster.queue.length > 0; count -= 1)
      this.#deliverOne();
    if (random(100) < 2 && this.#late.length > 0) {
      for (const parcel of this.#late.splice(random(this.#late.length), 1)) cluster.deliver(parcel);
    }
    if (random(100) < 25) this.#propose();
  }

  #deliverOne(): void {
    const { queue } = this.#cluster;
    const random = this.#random;
    const at = random(100) < this.#reorderPercent ? random(queue.length) : 0;
    const [parcel] = queue.splice(at, 1);
    if (parcel === undefined || random(100) < this.#lossPercent) return;
    if (random(100) < this.#latePercent) this.#late.push(parcel);
    else this.#cluster.deliver(parcel);
    if (random(100) < this.#repeatPercent) (random(2) === 0 ? queue : this.#late).push(parcel);
  }

  #propose(): void {
    const group = this.pick(this.#cluster.groups) ?? 0;
    this.#proposals += 1;
    this.anyLeader(group)?.propose(`p${this.#proposals}${'x'.repeat(this.#random(60))}`, group);
  }

  /** Half of the crashes happen to a leader. */
  #fault(): void {
    const cluster = this.#cluster;
    const group = this.pick(cluster.groups) ?? 0;
    const leader = this.#random(2) === 0 ? cluster.leaderOf(group) : undefined;
    const target = leader ?? this.pick([...cluster.nodes.values()]);
    if (target === undefined) return;
    switch (this.#random(7)) {
      case 0:
        if (target.isUp) this.#crash(target);
        return;
      case 1:
        cluster.isolate(target.id);
        return;
      case 2:
        cluster.passes = ({ from }) => from !== target.id;
        return;
      case 3:
        cluster.isolate(...[...cluster.nodes.keys()].filter(() => this.#random(2) === 0));
        return;
      case 4:
        this.pick(cluster.up)?.raft.peerLost(target.id);
        return;
      default:
        cluster.heal();
    }
  }

  /** A node crashes; the others notice at once, or later. */
  #crash(node: Node): void {
    node.crash(this.#random(2) === 0 ? 'lost' : 'kept');
    this.#witness.crashed?.(node);
    if (this.#random(2) === 0) for (const other of this.#cluster.up) other.raft.peerLost(node.id);
  }

  /** The faults end, and every node starts that may start again. */
  end(): void {
    this.#cluster.heal();
    for (const node of this.down) node.start();
  }
}
