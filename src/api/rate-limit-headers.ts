/**
 * The header fields that tell a client how it stands under the limit that decided, in each of their forms. Pure; the wall clock is an
 * argument. Seconds are rounded up, so that nobody comes back too early.
 */
import { waitHelps } from './waiting.ts';

/**
 * - `x`: `X-RateLimit-Limit`, `-Remaining`, `-Reset` (epoch seconds), `-Policy` and `-Rule`
 * - `draft6`: `RateLimit-Limit`, `-Remaining`, `-Reset` (seconds from now) and `-Policy`, as draft-ietf-httpapi-ratelimit-headers-06
 *   has them
 * - `draft`: `RateLimit` and `RateLimit-Policy`, as that draft has them since its version 8
 */
export const RATE_LIMIT_HEADERS = ['x', 'draft6', 'draft'] as const;
export type RateLimitHeaders = (typeof RATE_LIMIT_HEADERS)[number];

/** What of a decision the fields tell: see `Decision`. No field tells a time under a limit of 0: none is right. */
export interface ToldStanding {
  readonly allowed: boolean;
  readonly ruleId: string;
  readonly limit: number;
  /** Left out where it is not known: the policies do without it then. */
  readonly windowMillis?: number | undefined;
  readonly remaining: number;
  readonly retryAfterMillis: number;
  readonly resetMillis: number;
}

type Fields = Record<string, string>;

/** Most rule ids: the same in every field. */
const PLAIN_ID = /^[\w.-]*$/;

/**
 * The fields of all `forms`. `RateLimit-Policy` has one name in two forms that no field can hold together: with both, it is that
 * of `draft`, as clients of the other do without it.
 *
 * @param wallMillis the edge's own clock, only for `X-RateLimit-Reset`, which is an epoch time by convention
 */
export function rateLimitHeaders(
  decision: ToldStanding,
  forms: readonly RateLimitHeaders[],
  wallMillis: number,
): Fields {
  const headers: Fields = {};
  if (forms.includes('x')) putX(headers, decision, wallMillis);
  if (forms.includes('draft6')) putDraft6(headers, decision);
  if (forms.includes('draft')) putDraft(headers, decision);
  return headers;
}

export function secondsCeil(millis: number): number {
  return Math.ceil(millis / 1000);
}

function putX(headers: Fields, decision: ToldStanding, wallMillis: number): void {
  const { limit, remaining, resetMillis, ruleId } = decision;
  headers['x-ratelimit-limit'] = String(limit);
  headers['x-ratelimit-remaining'] = String(remaining);
  if (waitHelps(decision)) headers['x-ratelimit-reset'] = String(secondsCeil(wallMillis + resetMillis));
  headers['x-ratelimit-policy'] = plainPolicy(decision);
  // A rule id may hold what no header can.
  headers['x-ratelimit-rule'] = PLAIN_ID.test(ruleId) ? ruleId : encodeURI(ruleId);
}

function putDraft6(headers: Fields, decision: ToldStanding): void {
  headers['ratelimit-limit'] = String(decision.limit);
  headers['ratelimit-remaining'] = String(decision.remaining);
  if (waitHelps(decision)) headers['ratelimit-reset'] = String(secondsCeil(effectiveWindowMillis(decision)));
  headers['ratelimit-policy'] = plainPolicy(decision);
}

function putDraft(headers: Fields, decision: ToldStanding): void {
  const { limit, remaining, ruleId } = decision;
  const name = structuredString(ruleId);
  headers['ratelimit-policy'] = `${name};q=${limit}${windowOf(decision)}`;
  const time = waitHelps(decision) ? `;t=${secondsCeil(effectiveWindowMillis(decision))}` : '';
  headers['ratelimit'] = `${name};r=${remaining}${time}`;
}

/** Without a name, which came with later drafts. */
function plainPolicy(decision: ToldStanding): string {
  return `${decision.limit}${windowOf(decision)}`;
}

function windowOf({ windowMillis }: ToldStanding): string {
  return windowMillis === undefined ? '' : `;w=${secondsCeil(windowMillis)}`;
}

/**
 * Within which no more than what remains can be used. Who was denied, or has taken the last, must wait until there is more, which
 * is what `Retry-After` says, and must not say later than that field: the drafts want it no earlier than the end of this window.
 */
function effectiveWindowMillis({ allowed, remaining, retryAfterMillis, resetMillis }: ToldStanding): number {
  const mustWait = !allowed || (remaining === 0 && retryAfterMillis > 0);
  return mustWait ? retryAfterMillis : resetMillis;
}

/** RFC 9651 strings hold printable ASCII only; a rule id may hold more. */
function structuredString(text: string): string {
  if (PLAIN_ID.test(text)) return `"${text}"`;
  return `"${text.replace(/[^\u0020-\u007e]/g, '?').replace(/["\\]/g, '\\$&')}"`;
}
