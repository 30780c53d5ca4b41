/** A decision for tests that care about some of its fields. */
import type { Decision } from '../../src/api/answer.ts';

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
    ...changes,
  };
}
