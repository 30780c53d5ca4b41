/** The answer to a request under several limits, from those of its limits. Pure. */

import type { Decision, LimitStanding } from './answer.ts';
import { waitMillisOf } from './waiting.ts';

/** To one that all granted: that of the limit with least remaining, but as long a wait as the slowest asks for. */
export function jointGrant<Grant extends Decision>(grants: readonly Grant[]): Grant {
  const least = grants.reduce((a, b) => (b.remaining < a.remaining ? b : a));
  const waitMillis = Math.max(...grants.map((grant) => grant.waitMillis ?? 0));
  const joint = { ...least, limits: limitsOf(grants) };
  return waitMillis === 0 ? joint : { ...joint, waitMillis };
}

/** To one that some denied: that of the limit that takes longest to grant it. @param all of its limits, in their order */
export function jointDenial<Denial extends Decision>(
  denials: readonly Denial[],
  all: readonly LimitStanding[],
): Denial {
  const longest = denials.reduce((a, b) => (waitMillisOf(b) > waitMillisOf(a) ? b : a));
  return { ...longest, limits: all };
}

/** All that these were decided by, in their order. */
export function limitsOf(decisions: readonly Decision[]): LimitStanding[] {
  return decisions.flatMap((decision) => decision.limits ?? [standingOf(decision)]);
}

export function standingOf(decision: LimitStanding): LimitStanding {
  const { ruleId, limit, windowMillis, remaining, retryAfterMillis, resetMillis, restoredMillis } = decision;
  const standing = { ruleId, limit, windowMillis, remaining, retryAfterMillis, resetMillis };
  return restoredMillis === undefined ? standing : { ...standing, restoredMillis };
}
