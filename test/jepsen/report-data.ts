/** Reduces a history to what a page can draw: a few hundred steps of time, and a sample of operations. */
import type { Operation } from './history.ts';

export type Kind = 'granted' | 'denied' | 'failed' | 'unknown';
export const KINDS: readonly Kind[] = ['granted', 'denied', 'failed', 'unknown'];

/** One step of time. Latencies are those of decisions; undefined if there was none. */
export interface Step {
  readonly startMillis: number;
  /** Operations that completed per second. */
  readonly perSecond: Readonly<Record<Kind, number>>;
  readonly p50Millis: number | undefined;
  readonly p99Millis: number | undefined;
  readonly maxMillis: number | undefined;
}

export interface Dot {
  readonly atMillis: number;
  readonly latencyMillis: number;
  readonly kind: Kind;
}

export interface ReportData {
  /** The origin of all other times. */
  readonly originNanos: number;
  readonly durationMillis: number;
  readonly stepMillis: number;
  readonly steps: readonly Step[];
  readonly dots: readonly Dot[];
}

const STEPS_MAX = 400;
const DOTS_MAX = 4_000;
const STEP_MILLIS_MIN = 10;
const NANOS_PER_MILLI = 1e6;

export function kindOf({ class: outcome, allowed }: Operation): Kind {
  if (outcome === 'fail') return 'failed';
  if (outcome === 'info') return 'unknown';
  return allowed === true ? 'granted' : 'denied';
}

export function reportData(history: readonly Operation[]): ReportData {
  let originNanos = Infinity;
  let endNanos = -Infinity;
  for (const { invokeNanos, completeNanos } of history) {
    originNanos = Math.min(originNanos, invokeNanos);
    endNanos = Math.max(endNanos, completeNanos ?? invokeNanos);
  }
  if (originNanos > endNanos) originNanos = endNanos = 0;
  const durationMillis = Math.max(1, (endNanos - originNanos) / NANOS_PER_MILLI);
  const stepMillis = Math.max(STEP_MILLIS_MIN, durationMillis / STEPS_MAX);
  const stepCount = Math.floor(durationMillis / stepMillis) + 1;
  const counts = Array.from({ length: stepCount }, () => ({ granted: 0, denied: 0, failed: 0, unknown: 0 }));
  const latencies = Array.from({ length: stepCount }, (): number[] => []);
  const dots: Dot[] = [];
  const every = Math.max(1, Math.ceil(history.length / DOTS_MAX));
  for (const [i, op] of history.entries()) {
    if (op.completeNanos === null) continue;
    const kind = kindOf(op);
    const atMillis = (op.completeNanos - originNanos) / NANOS_PER_MILLI;
    const latencyMillis = (op.completeNanos - op.invokeNanos) / NANOS_PER_MILLI;
    const step = Math.floor(atMillis / stepMillis);
    const count = counts[step];
    if (count !== undefined) count[kind] += 1;
    if (op.class === 'ok') latencies[step]?.push(latencyMillis);
    // All refusals would be too many, and the sample must not depend on chance.
    if (i % every === 0) dots.push({ atMillis, latencyMillis, kind });
  }
  const steps = counts.map((count, i): Step => {
    const sorted = Float64Array.from(latencies[i] ?? []).sort();
    const perSecond = { ...count };
    for (const kind of KINDS) perSecond[kind] = (count[kind] * 1_000) / stepMillis;
    return {
      startMillis: i * stepMillis,
      perSecond,
      p50Millis: quantile(sorted, 0.5),
      p99Millis: quantile(sorted, 0.99),
      maxMillis: sorted.at(-1),
    };
  });
  return { originNanos, durationMillis, stepMillis, steps, dots };
}

function quantile(sorted: Float64Array, q: number): number | undefined {
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * q))];
}
