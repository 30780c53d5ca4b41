/**
 * The header fields that tell a client how it stands under the limit that decided, in each of their forms. Pure; the wall clock is an
 * argument. Seconds are rounded up, so that nobody comes back too early.
 */
import type { Decision } from '../api/answer.ts';
import type { RateLimitHeaders } from './http-settings.ts';

/**
 * The fields of all `forms`. `RateLimit-Policy` has one name in two forms that no field can hold together: with both, it is that
 * of `draft`, as clients of the other do without it.
 *
 * @param wallMillis the edge's own clock, only for `X-RateLimit-Reset`, which is an epoch time by convention
 */
export function rateLimitHeaders(
  decision: Decision,
  forms: readonly RateLimitHeaders[],
  wallMillis: number,
): Record<string, string> {
  const headers: Record<string, string> = {};
  if (forms.includes('x')) Object.assign(headers, xHeaders(decision, wallMillis));
  if (forms.includes('draft6')) Object.assign(headers, draft6Headers(decision));
  if (forms.includes('draft')) Object.assign(headers, draftHeaders(decision));
  return headers;
}

export function secondsCeil(millis: number): number {
  return Math.ceil(millis / 1000);
}

function xHeaders(decision: Decision, wallMillis: number): Record<string, string> {
  const { limit, remaining, resetMillis, ruleId } = decision;
  return {
    'x-ratelimit-limit': String(limit),
    'x-ratelimit-remaining': String(remaining),
    'x-ratelimit-reset': String(secondsCeil(wallMillis + resetMillis)),
    'x-ratelimit-policy': plainPolicy(decision),
    // A rule id may hold what no header can.
    'x-ratelimit-rule': encodeURI(ruleId),
  };
}

function draft6Headers(decision: Decision): Record<string, string> {
  return {
    'ratelimit-limit': String(decision.limit),
    'ratelimit-remaining': String(decision.remaining),
    'ratelimit-reset': String(secondsCeil(effectiveWindowMillis(decision))),
    'ratelimit-policy': plainPolicy(decision),
  };
}

function draftHeaders(decision: Decision): Record<string, string> {
  const { limit, remaining, windowMillis, ruleId } = decision;
  const name = structuredString(ruleId);
  return {
    'ratelimit-policy': `${name};q=${limit};w=${secondsCeil(windowMillis)}`,
    ratelimit: `${name};r=${remaining};t=${secondsCeil(effectiveWindowMillis(decision))}`,
  };
}

/** Without a name, which came with later drafts. */
function plainPolicy({ limit, windowMillis }: Decision): string {
  return `${limit};w=${secondsCeil(windowMillis)}`;
}

/**
 * Within which no more than what remains can be used. Who was denied, or has taken the last, must wait until there is more, which
 * is what `Retry-After` says, and must not say later than that field: the drafts want it no earlier than the end of this window.
 */
function effectiveWindowMillis({ allowed, remaining, retryAfterMillis, resetMillis }: Decision): number {
  const mustWait = !allowed || (remaining === 0 && retryAfterMillis > 0);
  return mustWait ? retryAfterMillis : resetMillis;
}

/** RFC 9651 strings hold printable ASCII only; a rule id may hold more. */
function structuredString(text: string): string {
  return `"${text.replace(/[^\u0020-\u007e]/g, '?').replace(/["\\]/g, '\\$&')}"`;
}
