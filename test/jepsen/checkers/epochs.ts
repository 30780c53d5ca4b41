/**
 * Finds grants before which a user may have been forgotten. The limiter forgets an idle user once its grants are out of
 * the window, plus a minute if callers give timestamps. A timestamp of another epoch is then judged as if the user were
 * new. Checkers must not count the forgotten grants against such a request.
 */
import { gainedMillis } from '../gained-time.ts';
import type { Operation } from '../history.ts';
import { groupWindowMillis } from '../model.ts';
import type { NemesisBand } from '../nemesis-log.ts';
import type { Budget } from './budgets.ts';

/** The horizons that the README states. */
const NEAR_EPOCH_MILLIS = 31 * 86_400_000;
const FORGOTTEN_AFTER_MILLIS = 60_000;

const NANOS_PER_MILLI = 1e6;

export interface EpochOptions {
  readonly driftPpm: number;
  readonly bands: readonly NemesisBand[];
  /** Stamps before this belong to another epoch. */
  readonly nearEpochMillis: number;
}

/**
 * 31 days before the cluster was created. The cluster existed when its first answer was given, so that answer is the
 * estimate. Without an answer in group time no stamp belongs to another epoch.
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
 * The grant of another epoch before which a user may have been forgotten. There is at most one: a user with a grant in
 * another epoch is kept for a day, longer than any history.
 */
export function begunAnew(budget: Budget, options: EpochOptions): Operation | undefined {
  const { driftPpm, bands, nearEpochMillis: near } = options;
  const first = budget.grants.findIndex(({ op }) => (op.timeMillis ?? Infinity) < near);
  const grant = budget.grants[first];
  if (grant === undefined || first === 0) return undefined;
  const windowMillis = groupWindowMillis(budget.windowMillis, driftPpm);
  // Within a window of the near epoch the request would count together with what was forgotten there.
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
