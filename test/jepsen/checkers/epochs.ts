/**
 * Who is idle is forgotten: once its grants are out of the window, and a minute later where callers give timestamps. What
 * it asks in another epoch then, it asks as a new user. Finds those grants; whoever judges must not hold against them what
 * was forgotten.
 */
import { gainedMillis } from '../gained-time.ts';
import type { Operation } from '../history.ts';
import { groupWindowMillis } from '../model.ts';
import type { NemesisBand } from '../nemesis-log.ts';
import type { Budget } from './budgets.ts';

/** As the README states them. */
const NEAR_EPOCH_MILLIS = 31 * 86_400_000;
const FORGOTTEN_AFTER_MILLIS = 60_000;

const NANOS_PER_MILLI = 1e6;

export interface EpochOptions {
  readonly driftPpm: number;
  readonly bands: readonly NemesisBand[];
  /** Stamps before it are of another epoch. */
  readonly nearEpochMillis: number;
}

/**
 * 31 days before the cluster was created, as far as its answers tell: it was there when the first of them was given.
 * Without an answer in group time no stamp is of another epoch.
 */
export function nearEpochMillis(budgets: readonly Budget[]): number {
  let earliest = Infinity;
  for (const { grants, denials, hasEventTimes } of budgets) {
    for (const { op } of grants) {
      if (op.timestampMillis === null) earliest = Math.min(earliest, op.timeMillis ?? Infinity);
    }
    if (hasEventTimes) continue;
    for (const { timeMillis } of denials) earliest = Math.min(earliest, timeMillis ?? Infinity);
  }
  return earliest === Infinity ? -Infinity : earliest - NEAR_EPOCH_MILLIS;
}

/**
 * The grant of another epoch before which a user may have been forgotten. It is one at most: who was granted something
 * there is kept for a day, which is longer than any history.
 */
export function begunAnew(budget: Budget, options: EpochOptions): Operation | undefined {
  const { driftPpm, bands, nearEpochMillis: near } = options;
  const first = budget.grants.findIndex(({ op }) => (op.timeMillis ?? Infinity) < near);
  const grant = budget.grants[first];
  if (grant === undefined || first === 0) return undefined;
  const windowMillis = groupWindowMillis(budget.windowMillis, driftPpm);
  // Within a window of the near epoch it would meet what was forgotten there.
  if ((grant.op.timeMillis ?? Infinity) > near - windowMillis) return undefined;
  let madeNanos = -Infinity;
  for (const { invokeNanos } of budget.grants.slice(0, first)) madeNanos = Math.max(madeNanos, invokeNanos);
  const { completeNanos } = grant;
  const idleMillis =
    ((completeNanos - madeNanos) / NANOS_PER_MILLI) * (1 + driftPpm / 1e6) +
    gainedMillis(bands, completeNanos) -
    gainedMillis(bands, madeNanos);
  return idleMillis >= windowMillis + FORGOTTEN_AFTER_MILLIS ? grant.op : undefined;
}
