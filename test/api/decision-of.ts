/** Builds decisions and limit statuses for tests that only care about some of the fields. */
import type { Decision, LimitStatus } from '../../src/api/answer.ts';

export function decisionOf(changes: Partial<Decision> = {}): Decision {
  return {
    allowed: true,
    ruleId: 'default',
    limit: 100,
    windowMillis: 60_000,
    remaining: 42,
    retryAfterMillis: 0,
    resetMillis: 59_001,
    decided: { term: 3, index: 90, timeMillis: 1_700_000_000_000 },
    rulesVersion: 7,
    ...changes,
  };
}

export function limitStatusOf(changes: Partial<LimitStatus> = {}): LimitStatus {
  const { ruleId, limit, windowMillis, remaining, retryAfterMillis, resetMillis } = decisionOf();
  return { ruleId, limit, windowMillis, remaining, retryAfterMillis, resetMillis, ...changes };
}
