/**
 * Simulates a cluster of nodes and partitions. Leaders and replicas are spread evenly. A node may die, and other nodes
 * take over its partitions; or a node joins, and the others send it snapshots.
 */
import { seededUnit } from '../random.ts';
import { Machine, Timeline } from './machine.ts';
import type { ServiceTimes } from './service-times.ts';
import { type Call, type Requests, SimulatedNode } from './simulated-node.ts';

export interface ClusterShape {
  readonly nodes: number;
  readonly partitionsPerNode: number;
  /** Cores of each machine. */
  readonly cores: number;
  readonly nodesPerMachine: number;
  readonly times: ServiceTimes;
  readonly seed: number;
}

const REPLICAS = 3;
/** Measured as the time to the first grant after SIGKILL of a leader, see RESULTS.md. */
const ELECTION_MICROS = 45_000;
/** Time until a client that lost its node uses the next one. */
const RECONNECT_MICROS = 20_000;

export class SimulatedCluster {
  readonly timeline = new Timeline();
  readonly machines: Machine[] = [];
  readonly nodes: SimulatedNode[] = [];
  readonly partitionCount: number;
  readonly times: ServiceTimes;
  readonly unit: () => number;
  /** Nodes with a replica, by partition. The first one alive leads. */
  readonly #replicas: SimulatedNode[][] = [];
  readonly #leaderless = new Map<number, Requests[]>();
  readonly #electing = new Set<number>();

  constructor({ nodes, partitionsPerNode, cores, nodesPerMachine, times, seed }: ClusterShape) {
    this.times = times;
    this.unit = seededUnit(seed);
    this.partitionCount = nodes * partitionsPerNode;
    const around = {
      timeline: this.timeline,
      times,
      leaderOf: (partition: number) => this.leaderOf(partition),
      replicasOf: (partition: number) => this.#running(partition),
      leaderless: (requests: Requests) => this.#wait(requests),
    };
    for (let i = 0; i < nodes; i += 1) {
      if (i % nodesPerMachine === 0) this.machines.push(new Machine(this.timeline, cores));
      const machine = this.machines.at(-1);
      if (machine !== undefined) this.nodes.push(new SimulatedNode(machine, around));
    }
    for (let partition = 0; partition < this.partitionCount; partition += 1)
      this.#replicas.push(Array.from({ length: REPLICAS }, (_, copy) => this.#holder(partition, copy)));
  }

  /** Node for a copy of a partition. The copies of one leader's partitions are spread over all other nodes. */
  #holder(partition: number, copy: number): SimulatedNode {
    const { nodes } = this;
    const round = Math.floor(partition / nodes.length);
    const step = 1 + (round % Math.max(1, Math.floor((nodes.length - 1) / (REPLICAS - 1))));
    const node = nodes[(partition + copy * step) % nodes.length];
    if (node === undefined) throw new RangeError('a cluster has nodes');
    return node;
  }

  leaderOf(partition: number): SimulatedNode | undefined {
    return this.#electing.has(partition) ? undefined : this.#running(partition)[0];
  }

  #running(partition: number): readonly SimulatedNode[] {
    return (this.#replicas[partition] ?? []).filter(({ isDown }) => !isDown);
  }

  #wait(requests: Requests): void {
    const waiting = this.#leaderless.get(requests.partition);
    if (waiting === undefined) this.#leaderless.set(requests.partition, [requests]);
    else waiting.push(requests);
  }

  /** Makes `count` requests, spread evenly over all partitions. */
  requestsOf(call: Call, count: number, front: SimulatedNode): Requests[] {
    const counts = new Map<number, number>();
    for (let i = 0; i < count; i += 1) {
      const partition = Math.floor(this.unit() * this.partitionCount);
      counts.set(partition, (counts.get(partition) ?? 0) + 1);
    }
    return [...counts].map(([partition, each]) => ({ call, partition, count: each, front }));
  }

  kill(node: SimulatedNode): void {
    const led = [...this.#replicas.keys()].filter((partition) => this.leaderOf(partition) === node);
    node.isDown = true;
    for (const partition of led) this.#electing.add(partition);
    const lost = [...node.undecided];
    node.undecided.clear();
    this.timeline.after(ELECTION_MICROS, () => {
      for (const partition of led) this.#electing.delete(partition);
      const waiting = led.flatMap((partition) => this.#leaderless.get(partition) ?? []);
      for (const partition of led) this.#leaderless.delete(partition);
      for (const requests of [...lost, ...waiting]) this.#askAgain(requests);
    });
  }

  #askAgain(requests: Requests): void {
    const { front } = requests;
    if (!front.isDown) front.ask([requests]);
    else this.timeline.after(RECONNECT_MICROS, () => this.#askElsewhere(requests));
  }

  #askElsewhere(requests: Requests): void {
    const next = this.nodes.find(({ isDown }) => !isDown);
    if (next === undefined) return;
    requests.front = next;
    next.ask([requests]);
  }
}
