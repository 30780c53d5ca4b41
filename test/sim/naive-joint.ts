/** Combines the decisions of several limits into the answer of one request: written from the documents. */
import type { Decision } from '../../src/limiter/decision.ts';
import type { LimitStatus } from '../../src/api/answer.ts';

/** The answer of all its limits, in their order. Under one limit alone the answer is that limit's. */
export function grantOfAll(grants: readonly Decision[]): Decision {
  const reported = grants[reportingGrant(grants)]!;
  if (grants.length === 1) return reported;
  const waitMillis = Math.max(...grants.map((grant) => grant.waitMillis ?? 0));
  return { ...reported, limits: grants, ...(waitMillis > 0 && { waitMillis }) };
}

/** The answer of each limit to a request that does not fit under all of them. */
export function denialOfAll(
  said: readonly { readonly denial: Decision; readonly fits: boolean }[],
): Decision {
  const limits = said.map(({ denial }) => denial);
  const denials = said.filter(({ fits }) => !fits).map(({ denial }) => denial);
  const reported = denials[reportingDenial(denials)]!;
  return said.length === 1 ? reported : { ...reported, limits };
}

/** The limit that an answer with `limits` must report. A limit that denies has a wait, others have none. */
export function reportingLimit(allowed: boolean, limits: readonly LimitStatus[]): number {
  return allowed ? reportingGrant(limits) : reportingDenial(limits);
}

/** The first one with the least remaining. */
export function reportingGrant(limits: readonly LimitStatus[]): number {
  const remaining = limits.map((limit) => limit.remaining);
  return remaining.indexOf(Math.min(...remaining));
}

/** The first one with the longest wait. */
function reportingDenial(limits: readonly LimitStatus[]): number {
  // No wait helps under a limit of 0.
  const waits = limits.map(({ limit, retryAfterMillis }) => (limit === 0 ? Infinity : retryAfterMillis));
  return waits.indexOf(Math.max(...waits));
}
