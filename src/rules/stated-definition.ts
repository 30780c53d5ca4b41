/** Makes a definition of the limit that a request states itself. */
import { parseStatedRule, parseStatedThrottle } from '../api/stated-rule.ts';
import type { RuleDefinition } from './rule-definition.ts';
import { LIKE_ITS_RULE } from './window-id.ts';

/** @param id as `statedRuleId` or `statedThrottleId` makes it */
export function statedDefinition(id: string): RuleDefinition {
  const throttle = parseStatedThrottle(id);
  const window = throttle
    ? { limit: throttle.count, windowMillis: throttle.periodMillis }
    : parseStatedRule(id);
  return {
    id,
    name: '',
    scope: { kind: 'descriptors', conditions: [], key: [] },
    group: id,
    priority: 0,
    windows: window === undefined ? [] : [{ ...window, name: LIKE_ITS_RULE }],
    meter: throttle === undefined ? 'slidingLog' : 'tokenBucket',
    ...(throttle !== undefined && { burst: throttle.maxBurst + 1 }),
    cost: { otherwise: 1, endpoints: [] },
    clock: 'cluster',
    failMode: 'closed',
    enabled: true,
    shadow: false,
    unlimited: false,
    replaces: [],
  };
}
