/**
 * Builds the rate limit header fields of an answer, in three forms, and the header of a denial that is caused by a
 * restore or a recovery. Pure: the wall clock is an argument. Seconds are rounded up, so that no client comes back too
 * early.
 */
import { waitHelps } from './waiting.ts';

/**
 * The forms of the header fields:
 *
 * - `x`: `X-RateLimit-Limit`, `-Remaining`, `-Reset` (seconds since 1970), `-Policy` and `-Rule`
 * - `draft6`: `RateLimit-Limit`, `-Remaining`, `-Reset` (seconds from now) and `-Policy`, as in
 *   draft-ietf-httpapi-ratelimit-headers-06
 * - `draft`: `RateLimit` and `RateLimit-Policy`, as in that draft since its version 8
 */
export const RATE_LIMIT_HEADERS = ['x', 'draft6', 'draft'] as const;
/** One of `RATE_LIMIT_HEADERS`. */
export type RateLimitHeaders = (typeof RATE_LIMIT_HEADERS)[number];

/**
 * The part of a `Decision` that the fields report. Under a limit of 0 the fields contain no time, because no time
 * would be right.
 */
export interface ReportedStatus {
  readonly allowed: boolean;
  readonly ruleId: string;
  readonly limit: number;
  /** Absent if it is not known; the policy fields then have no window. */
  readonly windowMillis?: number | undefined;
  readonly remaining: number;
  readonly retryAfterMillis: number;
  readonly resetMillis: number;
}

type Fields = Record<string, string>;

/** The form of most rule ids. They need no escaping in any field. */
const PLAIN_ID = /^[\w.-]*$/;

/**
 * The fields of all `forms`, by lower-case name. `RateLimit-Policy` belongs to two forms that one field cannot hold
 * together. If both are wanted, it is that of `draft`, because clients of `draft6` can do without it.
 *
 * @param wallMillis the node's own clock in milliseconds since 1970, only for `X-RateLimit-Reset`, which is a point
 *   in time by convention
 */
export function rateLimitHeaders(
  decision: ReportedStatus,
  forms: readonly RateLimitHeaders[],
  wallMillis: number,
): Fields {
  const headers: Fields = {};
  if (forms.includes('x')) putX(headers, decision, wallMillis);
  if (forms.includes('draft6')) putDraft6(headers, decision);
  if (forms.includes('draft')) putDraft(headers, decision);
  return headers;
}

/** Milliseconds to whole seconds, rounded up. */
export function secondsCeil(millis: number): number {
  return Math.ceil(millis / 1000);
}

function putX(headers: Fields, decision: ReportedStatus, wallMillis: number): void {
  const { limit, remaining, resetMillis, ruleId } = decision;
  headers['x-ratelimit-limit'] = String(limit);
  headers['x-ratelimit-remaining'] = String(remaining);
  if (waitHelps(decision)) headers['x-ratelimit-reset'] = String(secondsCeil(wallMillis + resetMillis));
  headers['x-ratelimit-policy'] = plainPolicy(decision);
  // A rule id may contain characters that a header must not.
  headers['x-ratelimit-rule'] = PLAIN_ID.test(ruleId) ? ruleId : encodeURI(ruleId);
}

function putDraft6(headers: Fields, decision: ReportedStatus): void {
  headers['ratelimit-limit'] = String(decision.limit);
  headers['ratelimit-remaining'] = String(decision.remaining);
  if (waitHelps(decision)) headers['ratelimit-reset'] = String(secondsCeil(effectiveWindowMillis(decision)));
  headers['ratelimit-policy'] = plainPolicy(decision);
}

function putDraft(headers: Fields, decision: ReportedStatus): void {
  const { limit, remaining, ruleId } = decision;
  const name = structuredString(ruleId);
  headers['ratelimit-policy'] = `${name};q=${limit}${windowOf(decision)}`;
  const time = waitHelps(decision) ? `;t=${secondsCeil(effectiveWindowMillis(decision))}` : '';
  headers['ratelimit'] = `${name};r=${remaining}${time}`;
}

/** The policy without a name. Names came with later drafts. */
function plainPolicy(decision: ReportedStatus): string {
  return `${decision.limit}${windowOf(decision)}`;
}

function windowOf({ windowMillis }: ReportedStatus): string {
  return windowMillis === undefined ? '' : `;w=${secondsCeil(windowMillis)}`;
}

/**
 * The time within which no more than `remaining` can be used. A client that was denied, or that took the last unit,
 * must wait until more is available, which is the time in `Retry-After`. The drafts require that `Retry-After` is not
 * earlier than the end of this window, so it is the same time here.
 */
function effectiveWindowMillis({
  allowed,
  remaining,
  retryAfterMillis,
  resetMillis,
}: ReportedStatus): number {
  const mustWait = !allowed || (remaining === 0 && retryAfterMillis > 0);
  return mustWait ? retryAfterMillis : resetMillis;
}

/** A string of structured fields (RFC 9651) holds only printable ASCII. A rule id may hold more. */
function structuredString(text: string): string {
  if (PLAIN_ID.test(text)) return `"${text}"`;
  return `"${text.replace(/[^\u0020-\u007e]/g, '?').replace(/["\\]/g, '\\$&')}"`;
}

/**
 * The name of a header in HTTP answers and in answers through Envoy: whole seconds until no grants are missing any
 * more, rounded up.
 */
const RESTORED_HEADER = 'quorate-restored';

/** The header as an object, or an empty object. @param restoredMillis see `LimitStatus`; undefined or 0: no header */
export function restoredHeaders(restoredMillis: number | undefined): Record<string, string> {
  if (restoredMillis === undefined || restoredMillis === 0) return {};
  return { [RESTORED_HEADER]: String(secondsCeil(restoredMillis)) };
}
