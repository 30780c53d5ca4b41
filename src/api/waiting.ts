/**
 * How long a denied client has to wait, whether waiting helps at all, and the messages that say so. Nodes and the
 * client's middleware send the same. Pure.
 */
import type { LimitStatus } from './answer.ts';

interface Waiting extends Pick<LimitStatus, 'limit' | 'retryAfterMillis'> {
  readonly isBlocked?: true;
}

/** False if waiting never helps: for a block without an end, and under a limit of 0. */
export function waitHelps({
  limit,
  isBlocked,
  retryAfterMillis = 0,
}: Pick<Waiting, 'limit' | 'isBlocked'> & Partial<Waiting>): boolean {
  return isBlocked === true ? retryAfterMillis > 0 : limit > 0;
}

/** Milliseconds until the request would be granted; `Infinity` if waiting never helps. */
export function waitMillisOf(limitStatus: Waiting): number {
  return waitHelps(limitStatus) ? limitStatus.retryAfterMillis : Number.POSITIVE_INFINITY;
}

/** The message of a denial because of a block. @param retryAfterSeconds undefined: the block has no end */
export function blockedMessage(retryAfterSeconds: number | undefined): string {
  const wait =
    retryAfterSeconds === undefined
      ? 'Waiting does not help.'
      : `Please retry after ${retryAfterSeconds} seconds.`;
  return `Blocked by an operator. ${wait}`;
}

const EXCEEDED = 'Rate limit exceeded.';
const RESTORED = 'The cluster was restored, and denies all requests until what it may have lost has expired.';

/**
 * The message of a denial by a limit.
 *
 * @param retryAfterSeconds undefined: the limit is 0
 * @param restoredMillis see `LimitStatus`
 */
export function denialMessage(
  retryAfterSeconds: number | undefined,
  restoredMillis: number | undefined,
): string {
  const cause = restoredMillis === undefined ? EXCEEDED : RESTORED;
  if (retryAfterSeconds === undefined) return `${cause} The limit is 0. Waiting does not help.`;
  return `${cause} Please retry after ${retryAfterSeconds} seconds.`;
}
