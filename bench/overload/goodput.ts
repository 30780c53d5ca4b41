/** Finds the best rate of a cluster, and measures how much of it remains when clients send a multiple of it. */
import { Latencies } from '../load/latencies.ts';
import type { LoadJob, LoadResult } from '../load/load-job.ts';
import { RESP_FORM } from '../peers/quorate.ts';
import type { QuorateCluster } from '../peers/quorate-cluster.ts';
import { runLoad } from '../run-load.ts';
import type { Running } from '../running.ts';

export interface OverloadInit {
  readonly cluster: QuorateCluster;
  readonly running: Running;
  readonly measuredMillis: number;
  /** Warm-up before the first measurement. */
  readonly warmUpMillis: number;
  /** Rates to measure, as multiples of the best. */
  readonly times: readonly number[];
}

type Listener = 'resp' | 'http';

/** Pause before every later measurement, in which the overload limits of the nodes settle. */
export const SETTLE_MILLIS = 2_000;
/** A rate with a higher p99 is too slow to be useful. */
const BEST_P99_MILLIS_MAX = 100;
/** Closed loops to try: connections and requests per write (always one over HTTP). */
const SHAPES = {
  resp: [
    { connections: 48, depth: 1 },
    { connections: 48, depth: 16 },
    { connections: 48, depth: 32 },
    { connections: 48, depth: 64 },
  ],
  http: [
    { connections: 48, depth: 1 },
    { connections: 128, depth: 1 },
    { connections: 256, depth: 1 },
  ],
} as const;
type Shape = (typeof SHAPES)[Listener][number];
export const OPEN_CONNECTIONS = { resp: 24, http: 3_000 } as const;

export async function load(init: OverloadInit, job: LoadJob): Promise<LoadResult> {
  return runLoad(job, init.running, { measuring: () => undefined, measured: () => undefined });
}

export function rateOf({ grants, denials, seconds }: LoadResult): number {
  return (grants + denials) / seconds;
}

async function closedLoop(
  init: OverloadInit,
  listener: Listener,
  { connections, depth }: Shape,
  warmUpMillis: number,
): Promise<{ readonly rate: number; readonly p99Millis: number }> {
  const base = {
    workload: 'grants',
    seed: 1,
    connections,
    warmUpMillis,
    measuredMillis: init.measuredMillis,
    addresses: listener === 'resp' ? init.cluster.resp : init.cluster.http,
  } as const;
  const result = await load(
    init,
    listener === 'resp'
      ? { ...base, kind: 'resp', form: RESP_FORM, pipeline: depth, isClusterAware: false }
      : { ...base, kind: 'http', batch: 1 },
  );
  const p99 = Latencies.decode(result.latencies).percentileMillis(99);
  const refused = Math.round(result.errors / result.seconds);
  console.log(
    `${listener}, closed loop, ${base.connections} connections, ${depth} at a time: ${Math.round(rateOf(result))} decisions/s, ` +
      `p99 ${p99.toFixed(1)} ms, refused ${refused}/s`,
  );
  return { rate: rateOf(result), p99Millis: p99 };
}

/** The best rate in closed loops: the highest with a p99 of at most 100 ms, or the lowest of all if none has that. */
export async function bestOf(init: OverloadInit, listener: Listener): Promise<number> {
  const rates: number[] = [];
  let warmUpMillis = init.warmUpMillis;
  for (const shape of SHAPES[listener]) {
    const { rate, p99Millis } = await closedLoop(init, listener, shape, warmUpMillis);
    if (rates.length === 0 || p99Millis <= BEST_P99_MILLIS_MAX) rates.push(rate);
    warmUpMillis = SETTLE_MILLIS;
  }
  return Math.max(...rates);
}

export async function measureOverload(listener: Listener, init: OverloadInit): Promise<void> {
  const best = await bestOf(init, listener);
  for (const times of init.times) {
    const base = {
      workload: 'grants',
      seed: 2,
      connections: OPEN_CONNECTIONS[listener],
      warmUpMillis: SETTLE_MILLIS,
      measuredMillis: init.measuredMillis,
      requestsPerSecond: Math.round(best * times),
    } as const;
    const result = await load(
      init,
      listener === 'resp'
        ? { ...base, kind: 'resp-open-loop', form: RESP_FORM, addresses: init.cluster.resp }
        : { ...base, kind: 'http-open-loop', addresses: init.cluster.http },
    );
    say(`${listener}, ${times} x the best`, base.requestsPerSecond, best, result);
  }
}

function say(what: string, wanted: number, best: number, result: LoadResult): void {
  const { errors, seconds, unsent, loadCpuSeconds } = result;
  const rate = rateOf(result);
  const latencies = Latencies.decode(result.latencies);
  const [p50, p99] = [50, 99].map((percent) => latencies.percentileMillis(percent).toFixed(1));
  const answered = Math.round(rate + errors / seconds);
  console.log(
    `${what}: wanted ${wanted}/s, answered ${answered}/s, goodput ${Math.round(rate)}/s = ${percent(rate / best)} of the best, ` +
      `p50 ${p50} ms, p99 ${p99} ms of decisions, refused ${Math.round(errors / seconds)}/s, ` +
      `${unsent ?? '?'} left in the client, load took ${(loadCpuSeconds / seconds).toFixed(2)} cores`,
  );
}

export function percent(fraction: number): string {
  return `${Math.round(fraction * 100)} %`;
}
