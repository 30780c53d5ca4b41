/** How long whoever is denied has to wait, and whether that helps at all. Pure. */
import type { LimitStanding } from './answer.ts';

type Waiting = Pick<LimitStanding, 'limit' | 'retryAfterMillis'>;

/** False under a limit of 0, which grants nothing however long anybody waits. What is blocked has such a limit, too. */
export function waitHelps({ limit }: Pick<LimitStanding, 'limit'>): boolean {
  return limit > 0;
}

/** Milliseconds until it is granted; `Infinity` where no wait helps. */
export function waitMillisOf(standing: Waiting): number {
  return waitHelps(standing) ? standing.retryAfterMillis : Number.POSITIVE_INFINITY;
}
