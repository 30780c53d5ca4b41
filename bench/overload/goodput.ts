/** The best rate of a cluster, and what is left of it at multiples of that. */
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
  /** Before the first measurement. */
  readonly warmUpMillis: number;
  /** Rates, in multiples of the best. */
  readonly times: readonly number[];
}

type Door = 'resp' | 'http';

/** Before every other measurement: the limits of the nodes find their level. */
export const SETTLE_MILLIS = 2_000;
/** So many requests per write of a connection; over HTTP there is one. */
const DEPTHS = [1, 16, 64];
const CLOSED_CONNECTIONS = { resp: 48, http: 256 } as const;
export const OPEN_CONNECTIONS = { resp: 24, http: 192 } as const;

export async function load(init: OverloadInit, job: LoadJob): Promise<LoadResult> {
  return runLoad(job, init.running, { measuring: () => undefined, measured: () => undefined });
}

export function rateOf({ grants, denials, seconds }: LoadResult): number {
  return (grants + denials) / seconds;
}

/** @param depth requests per write */
async function closedLoop(
  init: OverloadInit,
  door: Door,
  depth: number,
  warmUpMillis: number,
): Promise<number> {
  const base = {
    workload: 'grants',
    seed: 1,
    connections: CLOSED_CONNECTIONS[door],
    warmUpMillis,
    measuredMillis: init.measuredMillis,
    addresses: door === 'resp' ? init.cluster.resp : init.cluster.http,
  } as const;
  const result = await load(
    init,
    door === 'resp'
      ? { ...base, kind: 'resp', form: RESP_FORM, pipeline: depth, isClusterAware: false }
      : { ...base, kind: 'http', batch: 1 },
  );
  const p99 = Latencies.decode(result.latencies).percentileMillis(99);
  const refused = Math.round(result.errors / result.seconds);
  console.log(
    `${door}, closed loop, ${base.connections} connections, ${depth} at a time: ${Math.round(rateOf(result))} decisions/s, ` +
      `p99 ${p99.toFixed(1)} ms, refused ${refused}/s`,
  );
  return rateOf(result);
}

/** Decisions per second of clients that wait for their answers. */
export async function bestOf(init: OverloadInit, door: Door): Promise<number> {
  let best = 0;
  let warmUpMillis = init.warmUpMillis;
  for (const depth of door === 'resp' ? DEPTHS : [1]) {
    best = Math.max(best, await closedLoop(init, door, depth, warmUpMillis));
    warmUpMillis = SETTLE_MILLIS;
  }
  return best;
}

export async function measureOverload(door: Door, init: OverloadInit): Promise<void> {
  const best = await bestOf(init, door);
  for (const times of init.times) {
    const base = {
      workload: 'grants',
      seed: 2,
      connections: OPEN_CONNECTIONS[door],
      warmUpMillis: SETTLE_MILLIS,
      measuredMillis: init.measuredMillis,
      requestsPerSecond: Math.round(best * times),
    } as const;
    const result = await load(
      init,
      door === 'resp'
        ? { ...base, kind: 'resp-open-loop', form: RESP_FORM, addresses: init.cluster.resp }
        : { ...base, kind: 'open-loop', addresses: init.cluster.http, isOfDecisions: true },
    );
    say(`${door}, ${times} x the best`, base.requestsPerSecond, best, result);
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

export function percent(share: number): string {
  return `${Math.round(share * 100)} %`;
}
