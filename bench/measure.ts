/** Measures one cell in one round: runs the load, and reads what the processes under load used meanwhile. */
import { Latencies } from './load/latencies.ts';
import type { LoadJob } from './load/load-job.ts';
import type { RunningThing, WorkCounters } from './peers/thing-under-load.ts';
import { type ProcessUsage, usageOfAll } from './process-usage.ts';
import type { Running } from './running.ts';
import { runLoad } from './run-load.ts';
import { workloadOf } from './workloads.ts';

/** Result of one cell in one round. Absent values cannot be read on this system, or the thing does not report them. */
export interface Sample {
  /** Counts grants and denials. */
  readonly decisionsPerSecond: number;
  readonly grants: number;
  readonly denials: number;
  readonly errors: number;
  /** Errors, and answers that the workload should not get. */
  readonly unexpected: number;
  /** Latency of one request, or of the last one in a pipeline or body. */
  readonly p50Millis: number;
  readonly p99Millis: number;
  readonly p999Millis: number;
  readonly maxMillis: number;
  /** Processor time of all processes under load. */
  readonly cpuSecondsPerMillion?: number;
  /** Processor time of the load process, which is not in `cpuSecondsPerMillion`. */
  readonly loadCpuSecondsPerMillion: number;
  readonly syncsPerSecond?: number;
  readonly entriesPerSecond?: number;
  /** At the end of the load. */
  readonly residentBytes?: number;
}

interface Reading {
  readonly usage: ProcessUsage | undefined;
  readonly atMillis: number;
  readonly counters: Promise<WorkCounters | undefined>;
}

function read(thing: RunningThing): Reading {
  const usage = usageOfAll(thing.pids);
  const asked = thing.counters?.() ?? Promise.resolve(undefined);
  // A thing may be too busy to report its counters. The other numbers are still valid.
  return { usage, atMillis: performance.now(), counters: asked.catch(() => undefined) };
}

/** Runs one job. @throws if the load failed */
export async function measure(job: LoadJob, thing: RunningThing, running: Running): Promise<Sample> {
  let before: Reading | undefined;
  let after: Reading | undefined;
  const result = await runLoad(job, running, {
    measuring() {
      before = read(thing);
    },
    measured() {
      after = read(thing);
    },
  });
  const { grants, denials, errors, seconds, loadCpuSeconds } = result;
  const latencies = Latencies.decode(result.latencies);
  const decisions = grants + denials;
  const { expects } = workloadOf(job.workload);
  const wrong = expects === 'both' ? 0 : expects === 'grants' ? denials : grants;
  return {
    decisionsPerSecond: decisions / seconds,
    grants,
    denials,
    errors,
    unexpected: errors + wrong,
    p50Millis: latencies.percentileMillis(50),
    p99Millis: latencies.percentileMillis(99),
    p999Millis: latencies.percentileMillis(99.9),
    maxMillis: latencies.percentileMillis(100),
    loadCpuSecondsPerMillion: (loadCpuSeconds / decisions) * 1e6,
    ...(await usedBetween(before, after, decisions)),
  };
}

type Used = Pick<Sample, 'cpuSecondsPerMillion' | 'syncsPerSecond' | 'entriesPerSecond' | 'residentBytes'>;

async function usedBetween(
  before: Reading | undefined,
  after: Reading | undefined,
  decisions: number,
): Promise<Used> {
  if (before === undefined || after === undefined) return {};
  const seconds = (after.atMillis - before.atMillis) / 1_000;
  const [first, last] = await Promise.all([before.counters, after.counters]);
  return {
    ...(before.usage !== undefined &&
      after.usage !== undefined && {
        cpuSecondsPerMillion: ((after.usage.cpuSeconds - before.usage.cpuSeconds) / decisions) * 1e6,
        residentBytes: after.usage.residentBytes,
      }),
    ...(first !== undefined &&
      last !== undefined && {
        syncsPerSecond: (last.syncs - first.syncs) / seconds,
        entriesPerSecond: (last.entries - first.entries) / seconds,
      }),
  };
}
