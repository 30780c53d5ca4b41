/**
 * Forecasts the nodes, machines and money for a rate. Each node gets only as much load as it can take while one node of
 * its cluster is dead. A rate that needs more nodes than one cluster may have is split over several clusters, each with
 * its own users.
 */
import { NODES_MAX } from '../../src/config/config.ts';
import { type OpenLoad, openLoop, type OpenResult, type Trouble } from './load.ts';
import type { ServiceTimes } from './service-times.ts';
import type { ClusterShape } from './simulated-cluster.ts';

export interface Offer {
  readonly cores: number;
  readonly nodesPerMachine: number;
  readonly monthlyCost: number;
}

export type Clients = Omit<OpenLoad, 'requestsPerSecond'>;

export interface Forecast {
  readonly decisionsPerSecond: number;
  readonly clusters: number;
  readonly nodesPerCluster: number;
  readonly machines: number;
  readonly monthlyCost: number;
  readonly perNodePerSecond: number;
  readonly results: Readonly<Record<Trouble, OpenResult>>;
}

/** The maximum load of a node, as a fraction of its cores. The rest is room for the load of a dead node. */
const BUSY_FRACTION_MAX = 0.65;
const P99_MILLIS_MAX = 20;
/** Nodes of the simulated cluster: large enough that most requests must be forwarded. */
const TRIAL_NODES = 12;
const TRIAL_SECONDS = 0.2;
const SIMULATED_SECONDS = 0.5;
const REPLICAS = 3;
const SEED = 7;

interface World {
  readonly offer: Offer;
  readonly clients: Clients;
  readonly times: ServiceTimes;
}

function shapeOf(nodes: number, { offer: { cores, nodesPerMachine }, times }: World): ClusterShape {
  return { nodes, partitionsPerNode: 2, cores, nodesPerMachine, times, seed: SEED };
}

/** The highest rate per node, in requests per second, within the bounds above. */
export function perNodeOf(world: World): number {
  let [enough, tooMuch] = [100, 1_000_000];
  while (tooMuch / enough > 1.03) {
    const perNode = Math.sqrt(enough * tooMuch);
    const load = { ...world.clients, requestsPerSecond: perNode * TRIAL_NODES };
    const options = { seconds: TRIAL_SECONDS, trouble: 'none' } as const;
    const { busyFraction, p99Millis } = openLoop(shapeOf(TRIAL_NODES, world), load, options);
    if (busyFraction <= BUSY_FRACTION_MAX && p99Millis <= P99_MILLIS_MAX) enough = perNode;
    else tooMuch = perNode;
  }
  return enough;
}

export function forecast(decisionsPerSecond: number, perNode: number, world: World): Forecast {
  const { offer, clients } = world;
  // One more, because one may be dead.
  const wanted = Math.max(REPLICAS, Math.ceil(decisionsPerSecond / perNode) + 1);
  const clusters = Math.ceil(wanted / NODES_MAX);
  const nodes = Math.max(REPLICAS, Math.ceil(decisionsPerSecond / clusters / perNode) + 1);
  const machines = clusters * Math.ceil(nodes / offer.nodesPerMachine);
  const load = { ...clients, requestsPerSecond: decisionsPerSecond / clusters };
  const run = (trouble: Trouble): OpenResult =>
    openLoop(shapeOf(nodes, world), load, { seconds: SIMULATED_SECONDS, trouble });
  return {
    decisionsPerSecond,
    clusters,
    nodesPerCluster: nodes,
    machines,
    monthlyCost: machines * offer.monthlyCost,
    perNodePerSecond: perNode,
    results: { none: run('none'), death: run('death'), rebalancing: run('rebalancing') },
  };
}
