/** Simulates the clients of a cluster, and records their rates and latencies. */
import type { ClusterShape } from './simulated-cluster.ts';
import { SimulatedCluster } from './simulated-cluster.ts';
import type { Call, SimulatedNode } from './simulated-node.ts';

const MICROS_PER_SECOND = 1e6;
/** Cost of one turn of the client process if it shares the machine. Like a node it handles all that arrived at once. */
const CLIENT_TURN_MICROS = 10;

/**
 * Closed loop: each connection sends `pipeline` requests at once and waits for all answers. It runs on the first
 * machine.
 */
export interface ClosedLoad {
  readonly connections: number;
  readonly pipeline: number;
}

/** Simulates a closed loop. @returns decisions per second, after a warm-up */
export function closedLoopRate(shape: ClusterShape, load: ClosedLoad, seconds: number): number {
  const cluster = new SimulatedCluster(shape);
  const clients = new ClosedClients(cluster, load);
  clients.start();
  const warmUpMicros = (seconds / 4) * MICROS_PER_SECOND;
  cluster.timeline.runUntil(warmUpMicros);
  const before = clients.answered;
  cluster.timeline.runUntil(warmUpMicros + seconds * MICROS_PER_SECOND);
  return (clients.answered - before) / seconds;
}

class ClosedClients {
  answered = 0;
  readonly #cluster: SimulatedCluster;
  readonly #load: ClosedLoad;
  #ready: SimulatedNode[] = [];
  #isBusy = false;

  constructor(cluster: SimulatedCluster, load: ClosedLoad) {
    this.#cluster = cluster;
    this.#load = load;
  }

  start(): void {
    const { nodes } = this.#cluster;
    for (let i = 0; i < this.#load.connections; i += 1) {
      const node = nodes[i % nodes.length];
      if (node !== undefined) this.#ready.push(node);
    }
    this.#turn();
  }

  #turn(): void {
    if (this.#isBusy || this.#ready.length === 0) return;
    this.#isBusy = true;
    const { times, timeline, machines } = this.#cluster;
    const { pipeline } = this.#load;
    const ready = this.#ready.splice(0);
    const each = times.clientCall + times.clientRequest * pipeline;
    machines[0]?.run(CLIENT_TURN_MICROS + each * ready.length, () => {
      this.#isBusy = false;
      for (const node of ready) timeline.after(times.network, () => this.#ask(node));
      this.#turn();
    });
  }

  #ask(node: SimulatedNode): void {
    const { pipeline } = this.#load;
    const call: Call = {
      sentMicros: this.#cluster.timeline.nowMicros,
      unanswered: pipeline,
      answered: () => {
        this.answered += pipeline;
        this.#ready.push(node);
        this.#turn();
      },
    };
    node.ask(this.#cluster.requestsOf(call, pipeline, node));
  }
}

export interface OpenLoad {
  readonly requestsPerSecond: number;
  /** Requests in one call of a client. */
  readonly perCall: number;
  /** Fraction of calls, 0 to 1, that go straight to the leader of all their requests. */
  readonly toLeaders: number;
}

export interface OpenResult {
  readonly p50Millis: number;
  readonly p99Millis: number;
  /** Fraction of the measured calls that had no answer at the end. */
  readonly unansweredFraction: number;
  /** Used fraction of all cores of all machines. */
  readonly busyFraction: number;
}

/** What goes wrong after a quarter of the measured time. */
export type Trouble = 'none' | 'death' | 'rebalancing';

/** Time for one chunk of a snapshot (32 KiB), from `bench:stalls`. */
const CHUNK_MICROS = 2_500;
const CHUNK_EVERY_MICROS = 33_000;

/** Simulates an open loop: calls arrive as a Poisson process, from machines of their own. */
export function openLoop(
  shape: ClusterShape,
  load: OpenLoad,
  { seconds, trouble }: { readonly seconds: number; readonly trouble: Trouble },
): OpenResult {
  const cluster = new SimulatedCluster(shape);
  const { timeline, machines, nodes } = cluster;
  const latencies: number[] = [];
  const warmUpMicros = (seconds / 4) * MICROS_PER_SECOND;
  const endMicros = warmUpMicros + seconds * MICROS_PER_SECOND;
  let sent = 0;
  const pause = (): number =>
    (-Math.log(1 - cluster.unit()) * MICROS_PER_SECOND * load.perCall) / load.requestsPerSecond;
  const arrive = (): void => {
    if (timeline.nowMicros >= warmUpMicros) sent += 1;
    send(cluster, load, (micros, sentMicros) => {
      if (sentMicros >= warmUpMicros) latencies.push(micros / 1_000);
    });
    timeline.after(pause(), arrive);
  };
  timeline.after(0, arrive);
  const [first] = nodes;
  timeline.after(warmUpMicros + (seconds / 4) * MICROS_PER_SECOND, () => {
    if (trouble === 'death' && first !== undefined) cluster.kill(first);
    if (trouble === 'rebalancing') for (const node of nodes) sendSnapshot(cluster, node);
  });
  timeline.runUntil(endMicros);
  const cores = shape.cores * machines.length;
  const busyMicros = machines.reduce((sum, machine) => sum + machine.busyMicros, 0);
  const unanswered = sent - latencies.length;
  // Unanswered calls count as slower than all answered ones.
  const sorted = [...latencies.sort((a, b) => a - b), ...Array.from({ length: unanswered }, () => Infinity)];
  const at = (fraction: number): number => sorted[Math.floor(sorted.length * fraction)] ?? 0;
  return {
    p50Millis: at(0.5),
    p99Millis: at(0.99),
    unansweredFraction: unanswered / Math.max(1, sent),
    busyFraction: busyMicros / (cores * endMicros),
  };
}

function sendSnapshot(cluster: SimulatedCluster, node: SimulatedNode): void {
  node.workOn(CHUNK_MICROS);
  cluster.timeline.after(CHUNK_EVERY_MICROS, () => sendSnapshot(cluster, node));
}

function send(
  cluster: SimulatedCluster,
  { perCall, toLeaders }: OpenLoad,
  answered: (micros: number, sentMicros: number) => void,
): void {
  const { timeline, nodes, unit, partitionCount } = cluster;
  const sentMicros = timeline.nowMicros;
  const call: Call = {
    sentMicros,
    unanswered: perCall,
    answered: () => answered(timeline.nowMicros - sentMicros, sentMicros),
  };
  const partition = Math.floor(unit() * partitionCount);
  const leader = unit() < toLeaders ? cluster.leaderOf(partition) : undefined;
  const running = nodes.filter(({ isDown }) => !isDown);
  const front = leader ?? running[Math.floor(unit() * running.length)];
  if (front === undefined) return;
  const requests =
    leader === undefined
      ? cluster.requestsOf(call, perCall, front)
      : [{ call, partition, count: perCall, front }];
  timeline.after(cluster.times.network, () => front.ask(requests));
}
