/**
 * One random history of a Raft group: crashes with writes in flight, partitions, lost, late, repeated and reordered
 * messages, slow disks, snapshots every few entries, wall clocks that jump. The probabilities differ from seed to seed,
 * so that some histories are nearly calm and some nearly hopeless.
 */
import { assert } from '../../raft/assert.ts';
import type { NodeId } from '../../raft/types.ts';
import { type Envelope, Network, type NetworkOptions } from './network.ts';
import type { TestNode } from './node.ts';
import { seeded } from './seeded.ts';

type Action = 'deliver' | 'tick' | 'sync' | 'propose' | 'lose' | 'repeat' | 'fault';
type Fault = 'crash' | 'restart' | 'cut' | 'heal' | 'wall' | 'lost' | 'forget' | 'campaign' | 'transfer';

const ELECTION_TICKS = 5;

/** Leaders that hardly live long enough to reach one follower, and crash before their own disk has anything. */
const STORM: readonly (readonly [Action, number])[] = [
  ['deliver', 100],
  ['tick', 60],
  ['sync', 40],
  ['propose', 1],
  ['lose', 4],
  ['repeat', 0],
  ['fault', 20],
];
const STORM_FAULTS: readonly (readonly [Fault, number])[] = [
  ['crash', 8],
  ['restart', 16],
  ['heal', 4],
  ['cut', 2],
  ['forget', 10],
  ['campaign', 10],
];

export interface SimulationOptions extends Pick<NetworkOptions, 'newClock' | 'raft'> {
  /** One leader after the other, and little else. */
  readonly stormy?: boolean;
  readonly nodes: number;
  readonly seed: number;
}

export class Simulation {
  readonly network: Network;
  readonly #random: (bound: number) => number;
  readonly #weights: readonly (readonly [Action, number])[];
  readonly #faults: readonly (readonly [Fault, number])[];
  /** Percentage of deliveries that take a random message instead of the oldest of a link. */
  readonly #reorderPercent: number;
  /** Real time that passes in one step is below this. */
  readonly #stepMillisMax: number;
  /** Percentage of appends that never arrive, in addition to other losses. */
  readonly #appendLossPercent: number;
  #proposals = 0;

  constructor(options: SimulationOptions) {
    const random = seeded(options.seed);
    this.#random = random;
    this.network = new Network({
      ...options,
      autoSync: false,
      // Most histories compact all the time; some never do.
      ...(random(4) > 0 && { snapshotEvery: 2 + random(8), keepEntries: random(6) }),
      // Half of the histories write an entry or two at a time.
      ...(random(2) === 0 && { writeCostMax: 1 + random(1_500) }),
      raft: {
        heartbeatTicks: 1,
        electionTicks: ELECTION_TICKS,
        inflight: { messagesMax: 1 + random(4), bytesMax: 1 << 20 },
        appendBytesMax: random(2) === 0 ? 1 : 200,
        uncommittedBytesMax: 1_000,
        ...options.raft,
      },
    });
    this.#weights =
      options.stormy === true
        ? STORM
        : [
            ['deliver', (20 + random(60)) * options.nodes],
            ['tick', 30 + random(60)],
            ['sync', 8 + random(60)],
            ['propose', 2 + random(20)],
            ['lose', random(12)],
            ['repeat', random(10)],
            ['fault', random(10)],
          ];
    this.#faults =
      options.stormy === true
        ? STORM_FAULTS
        : [
            ['crash', random(4)],
            ['restart', 4 + random(8)],
            ['cut', random(6)],
            ['heal', 1 + random(6)],
            ['wall', random(4)],
            ['lost', random(4)],
            ['forget', random(4)],
            ['campaign', random(2)],
            ['transfer', random(3)],
          ];
    this.#appendLossPercent = options.stormy === true ? 70 : 0;
    this.#reorderPercent = random(3) === 0 ? 0 : random(60);
    this.#stepMillisMax = 1 + random(30);
    for (const node of this.network.nodes) node.wallOffsetMillis = this.#wallOffset();
  }

  run(steps: number): void {
    for (let i = 0; i < steps; i += 1) this.#step();
  }

  #step(): void {
    this.network.now += this.#random(this.#stepMillisMax * 100) / 100;
    const { network } = this;
    switch (this.#pick(this.#weights)) {
      case 'deliver': {
        const envelope = this.#takeEnvelope();
        if (envelope === undefined) return;
        const isLost = envelope.message.type === 'append' && this.#random(100) < this.#appendLossPercent;
        if (isLost) network.lose(envelope);
        else network.deliver(envelope);
        return;
      }
      case 'tick': {
        const node = this.#anyUp();
        if (node !== undefined) network.tick(node.id);
        return;
      }
      case 'sync': {
        const node = this.#any(network.up.filter((candidate) => candidate.isWriting));
        node?.sync();
        return;
      }
      case 'propose':
        this.#propose();
        return;
      case 'lose': {
        const envelope = this.#takeEnvelope();
        if (envelope !== undefined) network.lose(envelope);
        return;
      }
      case 'repeat': {
        const envelope = this.#any(network.queue);
        if (envelope !== undefined) network.queue.push(envelope);
        return;
      }
      case 'fault':
        this.#fault();
        return;
    }
  }

  #fault(): void {
    const { network } = this;
    // Half of the faults happen to the leader.
    const leader = this.#random(2) === 0 ? network.leader : undefined;
    const node = leader === undefined ? this.#anyUp() : network.node(leader.id);
    switch (this.#pick(this.#faults)) {
      case 'crash':
        if (node !== undefined) network.crash(node.id, this.#random(2) === 0 ? 'lost' : 'kept');
        return;
      case 'restart': {
        const down = this.#any(network.nodes.filter((candidate) => !candidate.isUp));
        if (down !== undefined) network.restart(down.id);
        return;
      }
      case 'cut':
        this.#cut(node?.id ?? this.#anyId());
        return;
      case 'heal':
        network.heal();
        return;
      case 'wall':
        if (node !== undefined) node.wallOffsetMillis = this.#wallOffset();
        return;
      case 'lost': {
        const peer = this.#anyId();
        if (node !== undefined && node.id !== peer)
          network.act(node.id, (core) => core.peerUnreachable(peer));
        return;
      }
      case 'forget':
        if (node !== undefined) network.act(node.id, (core) => core.forgetLeader(1 + this.#random(4)));
        return;
      case 'campaign':
        if (node !== undefined) network.act(node.id, (core) => core.campaign());
        return;
      case 'transfer': {
        const peer = this.#anyId();
        if (node !== undefined) network.act(node.id, (core) => core.transferLeadership(peer));
        return;
      }
    }
  }

  #cut(a: NodeId): void {
    const { network } = this;
    const b = this.#anyId();
    switch (this.#random(4)) {
      case 0:
        network.isolate(a);
        return;
      case 1:
        if (a !== b) network.cut(a, b);
        return;
      case 2:
        if (a !== b) network.cutOneWay(a, b);
        return;
      default: {
        const side = network.ids.filter(() => this.#random(2) === 0);
        network.partition(
          side,
          network.ids.filter((id) => !side.includes(id)),
        );
      }
    }
  }

  #propose(): void {
    const { network } = this;
    // Now and then a former leader, which may not know yet that there is a newer one.
    const leaders = network.up.filter((node) => node.core.role === 'leader');
    const node = this.#any(leaders);
    this.#proposals += 1;
    if (node !== undefined) network.propose(node.id, `p${this.#proposals}`);
  }

  /** The oldest message of some link, or any message at all. */
  #takeEnvelope(): Envelope | undefined {
    const { queue } = this.network;
    if (queue.length === 0) return undefined;
    const any = this.#random(queue.length);
    let at = any;
    if (this.#random(100) >= this.#reorderPercent) {
      const { from, to } = queue[any]?.message ?? {};
      at = queue.findIndex(({ message }) => message.from === from && message.to === to);
    }
    return queue.splice(at, 1)[0];
  }

  #wallOffset(): number {
    return this.#random(20_000) - 10_000;
  }

  #anyId(): NodeId {
    return 1 + this.#random(this.network.ids.length);
  }

  #anyUp(): TestNode | undefined {
    return this.#any(this.network.up);
  }

  #any<T>(from: readonly T[]): T | undefined {
    return from.length === 0 ? undefined : from[this.#random(from.length)];
  }

  #pick<T>(weights: readonly (readonly [T, number])[]): T {
    let total = 0;
    for (const [, weight] of weights) total += weight;
    let left = this.#random(total);
    for (const [value, weight] of weights) {
      if (left < weight) return value;
      left -= weight;
    }
    throw new Error('weights are positive');
  }

  /** The faults end. Within a few election timeouts there is one leader, and its proposals commit everywhere. */
  healAndExpectProgress(): void {
    const { network } = this;
    network.heal();
    for (const node of network.nodes) if (!node.isUp) network.restart(node.id);
    let proposed: number | undefined;
    for (let tick = 0; tick < 20 * ELECTION_TICKS; tick += 1) {
      network.now += 10;
      for (const node of network.nodes) network.tick(node.id);
      this.#rest();
      const leader = network.leader;
      if (proposed === undefined && leader !== undefined) {
        proposed = network.propose(leader.id, 'after all')?.index;
        this.#rest();
      }
      const end = network.leader?.lastPosition.index;
      if (
        proposed !== undefined &&
        network.nodes.every(
          ({ core }) => core.leader === leader?.id && core.applied >= (proposed ?? 0) && core.applied === end,
        )
      ) {
        return;
      }
    }
    const states = network.nodes.map(({ core }) => JSON.stringify(core.status()));
    assert(false, `no progress after healing: ${states.join(' ')}`);
  }

  /** Delivers and writes until nothing is on its way. */
  #rest(): void {
    const { network } = this;
    do {
      network.settle();
      for (const node of network.nodes) if (node.isWriting) node.sync();
    } while (network.queue.length > 0 || network.nodes.some((node) => node.isWriting));
  }
}
