/** The header and the message of a denial that a restore or a recovery causes. Nodes and the client's middleware send the same. */
import { secondsCeil } from './rate-limit-headers.ts';

/** At HTTP and through Envoy's gateways: whole seconds until nothing is missing any more, never early. */
const RESTORED_HEADER = 'quorate-restored';

const EXCEEDED = 'Rate limit exceeded.';
const RESTORED = 'The cluster was restored, and denies all requests until what it may have lost has expired.';

/** @param restoredMillis see `LimitStanding`; undefined or 0: no such header */
export function restoredHeaders(restoredMillis: number | undefined): Record<string, string> {
  if (restoredMillis === undefined || restoredMillis === 0) return {};
  return { [RESTORED_HEADER]: String(secondsCeil(restoredMillis)) };
}

/**
 * @param retryAfterSeconds undefined: the limit is 0
 * @param restoredMillis see `LimitStanding`
 */
export function denialMessage(
  retryAfterSeconds: number | undefined,
  restoredMillis: number | undefined,
): string {
  const cause = restoredMillis === undefined ? EXCEEDED : RESTORED;
  if (retryAfterSeconds === undefined) return `${cause} The limit is 0. Waiting does not help.`;
  return `${cause} Please retry after ${retryAfterSeconds} seconds.`;
}
