/**
 * Fits what the work costs on a machine to measured rates of a cluster on it, and says how far what is foretold with that lies from
 * what was measured. Three numbers are fitted to three rates of three nodes; those of five nodes are not fitted to.
 */
import type { BenchResults } from '../report/results.ts';
import { closedLoopRate } from './load.ts';
import { type Slowness, slowed } from './service-times.ts';

/** Of a cluster whose nodes and clients share one machine. */
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
  /** 0.1: a tenth more than was measured. */
  readonly error: number;
}

const SIMULATED_SECONDS = 1;
const SEED = 1;
/** Of `npm run bench`. */
const CONNECTIONS = 48;
const PARTITIONS_PER_NODE = 2;
const THING = /^quorate-(\d+)-nodes$/;
const SETUP = /^resp-(\d+)$/;

/** @throws RangeError if there is no such cell: `npm run bench -- --sweep nodes` measures them */
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
        // Nothing makes a cluster faster than it is, and on a shared machine much makes it slower.
        perSecond: summary.decisionsPerSecond.max,
      },
    ];
  });
  if (rates.length === 0) throw new RangeError('no rate of a sweep over nodes is in these results');
  return rates;
}

/** @param seconds simulated */
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

/** Steps along one number after the other while the sum of squared relative errors falls: there are three numbers and few rates. */
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
