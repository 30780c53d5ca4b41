/**
 * The header and the message of a denial that is caused by a restore or a recovery. Nodes and the client's middleware
 * send the same.
 */
import { secondsCeil } from './rate-limit-headers.ts';

/**
 * The name of a header in HTTP answers and in answers through Envoy: whole seconds until no grants are missing any
 * more, rounded up.
 */
const RESTORED_HEADER = 'quorate-restored';

const EXCEEDED = 'Rate limit exceeded.';
const RESTORED = 'The cluster was restored, and denies all requests until what it may have lost has expired.';

/** The header as an object, or an empty object. @param restoredMillis see `LimitStatus`; undefined or 0: no header */
export function restoredHeaders(restoredMillis: number | undefined): Record<string, string> {
  if (restoredMillis === undefined || restoredMillis === 0) return {};
  return { [RESTORED_HEADER]: String(secondsCeil(restoredMillis)) };
}

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
