/** How long whoever is denied has to wait, and whether that helps at all. Pure. */
import type { LimitStanding } from './answer.ts';

type Waiting = Pick<LimitStanding, 'limit' | 'retryAfterMillis'>;

/** False for what is blocked, and under a limit of 0, which grants nothing however long anybody waits. */
export function waitHelps({
  limit,
  isBlocked,
}: {
  readonly limit: number;
  readonly isBlocked?: true;
}): boolean {
  return limit > 0 && isBlocked !== true;
}

/** Milliseconds until it is granted; `Infinity` where no wait helps. */
export function waitMillisOf(standing: Waiting): number {
  return waitHelps(standing) ? standing.retryAfterMillis : Number.POSITIVE_INFINITY;
}
