/**
 * Fits the service times of the model to measured rates of a cluster, and reports the error of its predictions. Three
 * numbers are fitted to three rates of three nodes. The rates of five nodes are not used for the fit, so they test it.
 */
import type { BenchResults } from '../report/results.ts';
import { closedLoopRate } from './load.ts';
import { type Slowness, slowed } from './service-times.ts';

/** A measured rate of a cluster whose nodes and clients share one machine. */
export interface MeasuredRate {
  readonly nodes: number;
  readonly partitionsPerNode: number;
  readonly cores: number;
  readonly connections: number;
  readonly pipeline: number;
  readonly perSecond: number;
}

export interface Foretold {
  readonly measured: MeasuredRate;
  readonly perSecond: number;
  /** Relative error; 0.1 means a tenth more than measured. */
  readonly error: number;
}

const SIMULATED_SECONDS = 1;
const SEED = 1;
/** Connections of the load in `npm run bench`. */
const CONNECTIONS = 48;
const PARTITIONS_PER_NODE = 2;
const THING = /^quorate-(\d+)-nodes$/;
const SETUP = /^resp-(\d+)$/;

/**
 * Reads the rates from bench results.
 *
 * @throws RangeError if a cell is missing: `npm run bench -- --sweep nodes` measures them
 */
export function ratesOf({ summaries, machine }: BenchResults): MeasuredRate[] {
  const rates = summaries.flatMap((summary): MeasuredRate[] => {
    const { thing, setup, workload } = summary;
    const nodes = Number(THING.exec(thing)?.[1] ?? 0);
    const pipeline = Number(SETUP.exec(setup)?.[1] ?? 0);
    if (nodes === 0 || pipeline === 0 || workload !== 'grants') return [];
    return [
      {
        nodes,
        pipeline,
        partitionsPerNode: PARTITIONS_PER_NODE,
        cores: machine.cpus,
        connections: CONNECTIONS,
        // Other work on a shared machine only slows a cluster down, so the highest rate is the most accurate.
        perSecond: summary.decisionsPerSecond.max,
      },
    ];
  });
  if (rates.length === 0) throw new RangeError('no rate of a sweep over nodes is in these results');
  return rates;
}

/** Predicts a measured rate. @param seconds simulated time */
export function foretell(measured: MeasuredRate, slowness: Slowness, seconds = SIMULATED_SECONDS): Foretold {
  const { nodes, partitionsPerNode, cores, connections, pipeline } = measured;
  const shape = {
    nodes,
    partitionsPerNode,
    cores,
    nodesPerMachine: nodes,
    times: slowed(slowness),
    seed: SEED,
  };
  const perSecond = closedLoopRate(shape, { connections, pipeline }, seconds);
  return { measured, perSecond, error: perSecond / measured.perSecond - 1 };
}

const STEPS = [2, 1.4, 1.2, 1.1, 1.05, 1.02];
const PASSES = 4;
const NAMES = ['rounds', 'calls', 'requests'] as const;

/**
 * Fits the three numbers by coordinate descent: changes one after the other while the sum of squared relative errors
 * falls.
 */
export function calibrate(rates: readonly MeasuredRate[], seconds = SIMULATED_SECONDS): Slowness {
  const lossOf = (slowness: Slowness): number =>
    rates.reduce((sum, rate) => {
      const { perSecond } = foretell(rate, slowness, seconds);
      return sum + Math.log(perSecond / rate.perSecond) ** 2;
    }, 0);
  let best: Slowness = { calls: 1, requests: 1, rounds: 1 };
  let loss = lossOf(best);
  for (const step of STEPS) {
    for (let pass = 0; pass < PASSES; pass += 1) {
      const before = loss;
      for (const name of NAMES) {
        for (const factor of [step, 1 / step]) {
          const next = { ...best, [name]: best[name] * factor };
          const nextLoss = lossOf(next);
          if (nextLoss >= loss) continue;
          [best, loss] = [next, nextLoss];
          break;
        }
      }
      if (loss === before) break;
    }
  }
  return best;
}
