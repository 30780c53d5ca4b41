/** Combines the decisions of several limits about one request into one answer. Pure. */

import type { Decision, LimitStatus } from './answer.ts';
import { waitMillisOf } from './waiting.ts';

/**
 * The joint answer if all limits grant: the decision of the limit with the least remaining, with the longest
 * `waitMillis` of all.
 */
export function jointGrant<Grant extends Decision>(grants: readonly Grant[]): Grant {
  const least = grants.reduce((a, b) => (b.remaining < a.remaining ? b : a));
  const waitMillis = Math.max(...grants.map((grant) => grant.waitMillis ?? 0));
  const joint = { ...least, limits: limitsOf(grants) };
  return waitMillis === 0 ? joint : { ...joint, waitMillis };
}

/**
 * The joint answer if at least one limit denies: the denial with the longest wait.
 *
 * @param denials the decisions that deny
 * @param all the status of all limits, in their order
 */
export function jointDenial<Denial extends Decision>(
  denials: readonly Denial[],
  all: readonly LimitStatus[],
): Denial {
  const longest = denials.reduce((a, b) => (waitMillisOf(b) > waitMillisOf(a) ? b : a));
  return { ...longest, limits: all };
}

/** The status of every limit behind these decisions, in their order. */
export function limitsOf(decisions: readonly Decision[]): LimitStatus[] {
  return decisions.flatMap((decision) => decision.limits ?? [limitStatusOf(decision)]);
}

/** Only the fields of a `LimitStatus`, without the rest of the decision. */
export function limitStatusOf(decision: LimitStatus): LimitStatus {
  const { ruleId, limit, windowMillis, remaining, retryAfterMillis, resetMillis, restoredMillis } = decision;
  const limitStatus = { ruleId, limit, windowMillis, remaining, retryAfterMillis, resetMillis };
  return restoredMillis === undefined ? limitStatus : { ...limitStatus, restoredMillis };
}
