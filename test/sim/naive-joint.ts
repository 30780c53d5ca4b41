/** Combines the decisions of several limits into the answer of one request: written from the documents. */
import type { Decision } from '../../src/limiter/decision.ts';
import type { LimitStanding } from '../../src/api/answer.ts';

/** The answer of all its limits, in their order. Under one limit alone the answer is that limit's. */
export function grantOfAll(grants: readonly Decision[]): Decision {
  const told = grants[tellingGrant(grants)]!;
  if (grants.length === 1) return told;
  const waitMillis = Math.max(...grants.map((grant) => grant.waitMillis ?? 0));
  return { ...told, limits: grants, ...(waitMillis > 0 && { waitMillis }) };
}

/** The answer of each limit to a request that does not fit under all of them. */
export function denialOfAll(
  said: readonly { readonly denial: Decision; readonly fits: boolean }[],
): Decision {
  const limits = said.map(({ denial }) => denial);
  const denials = said.filter(({ fits }) => !fits).map(({ denial }) => denial);
  const told = denials[tellingDenial(denials)]!;
  return said.length === 1 ? told : { ...told, limits };
}

/** The limit that an answer with `limits` must report. A limit that denies has a wait, others have none. */
export function tellingLimit(allowed: boolean, limits: readonly LimitStanding[]): number {
  return allowed ? tellingGrant(limits) : tellingDenial(limits);
}

/** The first one with the least remaining. */
export function tellingGrant(limits: readonly LimitStanding[]): number {
  const remaining = limits.map((limit) => limit.remaining);
  return remaining.indexOf(Math.min(...remaining));
}

/** The first one with the longest wait. */
function tellingDenial(limits: readonly LimitStanding[]): number {
  // No wait helps under a limit of 0.
  const waits = limits.map(({ limit, retryAfterMillis }) => (limit === 0 ? Infinity : retryAfterMillis));
  return waits.indexOf(Math.max(...waits));
}
