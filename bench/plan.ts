/**
 * Chooses the cells of a run and estimates how long it takes. A cell is one thing under load, one setup (protocol,
 * connections, pipelining) and one workload; its id is `thing/setup/workload`. It starts nothing.
 */
import type { Address, LoadJob } from './load/load-job.ts';
import type { RunningThing, ThingUnderLoad } from './peers/thing-under-load.ts';
import type { WorkloadId } from './workloads.ts';

export interface Timing {
  readonly rounds: number;
  readonly measuredMillis: number;
  readonly warmUpMillis: number;
  /** Extra warm-up for the first cell after a thing was started: most things still compile hot code then. */
  readonly firstWarmUpMillis: number;
}

export const QUICK_TIMING: Timing = {
  rounds: 1,
  measuredMillis: 2_000,
  warmUpMillis: 1_000,
  firstWarmUpMillis: 2_000,
};
export const FULL_TIMING: Timing = {
  rounds: 3,
  measuredMillis: 3_000,
  warmUpMillis: 1_000,
  firstWarmUpMillis: 4_000,
};

/** How requests are sent. Things are compared only within the same setup. */
export interface Setup {
  readonly id: string;
  readonly title: string;
  /** The yardstick of this setup. */
  readonly bare: 'bare-http' | 'bare-resp';
  /** Also runs the other workloads, not only `grants`. */
  readonly isMain: boolean;
  /** Set if the setup makes sense for only this thing. */
  readonly only?: string;
  /** The job; undefined if the thing has no such listener. */
  readonly job: (thing: RunningThing, common: CommonJob) => LoadJob | undefined;
}

export type CommonJob = Pick<LoadJob, 'workload' | 'seed' | 'warmUpMillis' | 'measuredMillis'>;

export interface Cell {
  readonly id: string;
  readonly thing: ThingUnderLoad;
  readonly setup: Setup;
  readonly workload: WorkloadId;
}

interface Listener {
  readonly addresses: readonly Address[];
  readonly token?: string;
}

function clientsOf({ addresses, token }: Listener): Listener {
  return { addresses, ...(token !== undefined && { token }) };
}

function http(connections: number, isMain: boolean): Setup {
  return {
    id: `http-${connections}`,
    title: `HTTP, ${connections} connections`,
    bare: 'bare-http',
    isMain,
    job: ({ http: listener }, common) =>
      listener && { kind: 'http', ...common, ...clientsOf(listener), connections, batch: 1 },
  };
}

function openLoop(requestsPerSecond: number): Setup {
  return {
    id: `open-${requestsPerSecond}`,
    title: `HTTP, ${requestsPerSecond} requests per second at fixed times`,
    bare: 'bare-http',
    isMain: false,
    job: ({ http: listener }, common) =>
      listener && {
        kind: 'open-loop',
        ...common,
        ...clientsOf(listener),
        connections: 64,
        requestsPerSecond,
      },
  };
}

interface RespShape {
  readonly connections: number;
  readonly pipeline: number;
  readonly isClusterAware?: true;
}

function resp({ connections, pipeline, isClusterAware }: RespShape, isMain: boolean): Setup {
  const way = isClusterAware === true ? 'resp-cluster' : 'resp';
  const shape = `${connections} connections, ${pipeline === 1 ? 'one request' : `${pipeline} requests`} at a time`;
  const others = way === 'resp' && pipeline === 1 ? ' (PostgreSQL and etcd: through their clients)' : '';
  return {
    id: `${way}-${pipeline}`,
    title: `RESP${isClusterAware === true ? ', cluster-aware' : ''}, ${shape}${others}`,
    bare: 'bare-resp',
    isMain,
    // With a single server, cluster awareness changes nothing.
    ...(isClusterAware === true && { only: 'quorate' }),
    job: ({ resp: listener, limiter }, common) => {
      if (limiter !== undefined) {
        const { kind, addresses } = limiter;
        return { kind: 'limiter', ...common, limiter: kind, addresses, connections };
      }
      return (
        listener && {
          kind: 'resp',
          ...common,
          ...clientsOf(listener),
          form: listener.form,
          connections,
          pipeline,
          isClusterAware: isClusterAware === true,
        }
      );
    },
  };
}

function httpBatch(batch: number): Setup {
  return {
    id: `http-batch-${batch}`,
    title: `HTTP, 16 connections, ${batch} requests in a body`,
    bare: 'bare-http',
    isMain: false,
    only: 'quorate',
    job: ({ http: listener }, common) =>
      listener && { kind: 'http', ...common, ...clientsOf(listener), connections: 16, batch },
  };
}

const ONE_AT_A_TIME = 'resp-1';

const QUICK_SETUPS: readonly Setup[] = [
  http(48, true),
  resp({ connections: 48, pipeline: 1 }, false),
  resp({ connections: 48, pipeline: 16 }, true),
  resp({ connections: 48, pipeline: 16, isClusterAware: true }, false),
];

const FULL_SETUPS: readonly Setup[] = [
  http(48, true),
  http(256, false),
  openLoop(2_000),
  resp({ connections: 48, pipeline: 1 }, false),
  resp({ connections: 48, pipeline: 16 }, true),
  resp({ connections: 48, pipeline: 64 }, false),
  resp({ connections: 48, pipeline: 1, isClusterAware: true }, false),
  resp({ connections: 48, pipeline: 16, isClusterAware: true }, false),
  resp({ connections: 48, pipeline: 64, isClusterAware: true }, false),
  httpBatch(100),
];

/** The setups of `--sweep`, with `grants` only. */
const SWEEP_SETUPS: readonly Setup[] = [
  http(48, false),
  resp({ connections: 48, pipeline: 1 }, false),
  resp({ connections: 48, pipeline: 16 }, false),
  resp({ connections: 48, pipeline: 64 }, false),
];

const MAIN_WORKLOADS: readonly WorkloadId[] = ['grants', 'denials'];
const ALL_WORKLOADS: readonly WorkloadId[] = ['grants', 'denials', 'mixed', 'abuse', 'million', 'zipf'];

export interface PlanOptions {
  readonly isQuick: boolean;
  readonly isSweep: boolean;
  /** Cells whose id contains one of these texts; all cells if empty. */
  readonly only: readonly string[];
}

/** Whether the thing supports the setup. It is decided without starting the thing. */
function mayHave(thing: ThingUnderLoad, setup: Setup): boolean {
  if (setup.only !== undefined) return setup.only === thing.id;
  const isHttp = setup.bare === 'bare-http';
  switch (thing.id) {
    case 'bare-http':
      return isHttp;
    case 'flexible':
      return isHttp && setup.isMain;
    case 'quorate-guarded':
      return setup.isMain;
    case 'postgres':
    case 'etcd':
      return setup.id === ONE_AT_A_TIME;
    default:
      return thing.id.startsWith('quorate') || !isHttp;
  }
}

function workloadsOf(thing: ThingUnderLoad, setup: Setup, isQuick: boolean): readonly WorkloadId[] {
  if (!setup.isMain) return ['grants'];
  switch (thing.id) {
    case 'quorate':
      return isQuick || setup.bare === 'bare-http' ? MAIN_WORKLOADS : ALL_WORKLOADS;
    case 'redis-memory':
    case 'flexible':
      return MAIN_WORKLOADS;
    default:
      // A yardstick treats all users alike, so one workload is enough.
      return ['grants'];
  }
}

/** Chooses the cells, in the order of the things. */
export function planCells(things: readonly ThingUnderLoad[], options: PlanOptions): Cell[] {
  const { isQuick, isSweep, only } = options;
  const setups = isSweep ? SWEEP_SETUPS : isQuick ? QUICK_SETUPS : FULL_SETUPS;
  const cells: Cell[] = [];
  for (const thing of things)
    for (const setup of setups.filter((each) => mayHave(thing, each)))
      for (const workload of workloadsOf(thing, setup, isQuick))
        cells.push({ id: `${thing.id}/${setup.id}/${workload}`, thing, setup, workload });
  return cells.filter(({ id }) => only.length === 0 || only.some((part) => id.includes(part)));
}

/** Time for starting a load process, connecting and encoding requests. */
const OVERHEAD_MILLIS_PER_CELL = 1_000;
const START_MILLIS_PER_THING = 4_000;

/** Estimates the time of a run on an otherwise idle machine. */
export function estimateMillis(cells: readonly Cell[], timing: Timing): number {
  const { rounds, measuredMillis, warmUpMillis, firstWarmUpMillis } = timing;
  const things = new Set(cells.map(({ thing }) => thing.id)).size;
  const perCell = measuredMillis + warmUpMillis + OVERHEAD_MILLIS_PER_CELL;
  return rounds * (cells.length * perCell + things * (START_MILLIS_PER_THING + firstWarmUpMillis));
}
