/** The first rules of a cluster, for tests that are not about rules. */
import { validateRuleTable } from '../../src/limiter/rules.ts';

export const FIRST_RULES = validateRuleTable({
  version: 1,
  rules: [{ id: 'default', limit: 100, windowMillis: 60_000 }],
});
