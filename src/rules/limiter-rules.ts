/**
 * Compiles rule definitions to the rules that the limiter stores, and makes definitions of rules that have none: those
 * of a plain rule table, and those that a request states itself.
 */
import type { Rule } from '../api/rule.ts';
import { LIKE_ITS_RULE, type RuleDefinition, windowRuleId } from './rule-definition.ts';
import { USER } from '../api/descriptors.ts';
import { parseStatedRule, parseStatedThrottle } from '../api/stated-rule.ts';

/**
 * The limiter's rules, one for each window, in the order of the definitions; the windows of each definition are sorted,
 * shortest first. Unlimited and disabled definitions give none. Which requests a rule applies to is not part of them;
 * match.ts decides that.
 */
export function limiterRulesOf(definitions: readonly RuleDefinition[]): readonly Rule[] {
  return definitions.filter(({ enabled, unlimited }) => enabled && !unlimited).flatMap(rulesOf);
}

function rulesOf(definition: RuleDefinition): readonly Rule[] {
  const { windows, meter, burst, clock } = definition;
  const shortest = windows[0]?.windowMillis;
  return windows.map((window) => ({
    id: windowRuleId(definition, window),
    of: definition.id,
    limit: window.limit,
    windowMillis: window.windowMillis,
    clock,
    meter,
    ...(window.windowMillis === shortest && burst !== undefined && { burst }),
  }));
}

/**
 * The definitions of a plain rule table, in its order. All its rules count by user. The first rule applies to every
 * request that names no rule; the others are asked for by name. Tables come from `cluster.json` and from changes
 * that give a list of limits.
 */
export function definitionsOfTable(rules: readonly Rule[]): readonly RuleDefinition[] {
  return rules.map(({ id, limit, windowMillis, meter = 'slidingLog', burst, clock }, place) => ({
    id,
    name: id,
    scope: { kind: 'descriptors', conditions: [], key: [{ name: USER }] },
    group: id,
    priority: 0,
    windows: [{ name: LIKE_ITS_RULE, limit, windowMillis }],
    meter,
    ...(burst !== undefined && { burst }),
    cost: { otherwise: 1, endpoints: [] },
    clock,
    failMode: 'closed',
    enabled: true,
    shadow: false,
    ...(place > 0 && { named: true }),
    unlimited: false,
    replaces: [],
  }));
}

/**
 * The definition of the limit that a request states itself. @param id as `statedRuleId` or `statedThrottleId` makes
 * it
 */
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
