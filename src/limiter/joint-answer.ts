/** The answer to a request under several limits, from those of its limits. Pure. */

import type { LimitStanding } from '../api/answer.ts';
import type { Decision } from './decision.ts';

/** To one that all granted: that of the limit with least remaining, but as long a wait as the slowest asks for. */
export function jointGrant(grants: readonly Decision[]): Decision {
  const least = grants.reduce((a, b) => (b.remaining < a.remaining ? b : a));
  const waitMillis = Math.max(...grants.map((grant) => grant.waitMillis ?? 0));
  const joint = { ...least, limits: grants.map(standingOf) };
  return waitMillis === 0 ? joint : { ...joint, waitMillis };
}

/** To one that some denied: that of the limit that takes longest to grant it. @param all of its limits, in their order */
export function jointDenial(denials: readonly Decision[], all: readonly LimitStanding[]): Decision {
  const longest = denials.reduce((a, b) => (b.retryAfterMillis > a.retryAfterMillis ? b : a));
  return { ...longest, limits: all };
}

export function standingOf(decision: LimitStanding): LimitStanding {
  const { ruleId, limit, windowMillis, remaining, retryAfterMillis, resetMillis } = decision;
  return { ruleId, limit, windowMillis, remaining, retryAfterMillis, resetMillis };
}
