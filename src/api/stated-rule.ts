/**
 * Rules that a request states itself, instead of naming one of the table: some protocols give the limit with every request. A
 * rule id of one of these forms says all there is to know, so that everybody reads it alike:
 *
 * - `100/60000ms`: a limit of 100 in any minute. A key has a budget of its own under each such id.
 * - `30/60000ms+15`: 30 a minute, and 15 more at once: the numbers of a call of `CL.THROTTLE`. A key has one state, which the numbers
 *   of each call judge: other numbers are no other budget.
 */
import { isBoundedInteger } from './bounded.ts';
import { LIMIT_MAX, WINDOW_MILLIS_MAX } from './rule.ts';

export interface StatedRule {
  /** 0 to `LIMIT_MAX`. */
  readonly limit: number;
  /** 1 to `WINDOW_MILLIS_MAX`. */
  readonly windowMillis: number;
}

/** What a call of `CL.THROTTLE` asks by. `(maxBurst + 1) * periodMillis / count` is at most `WINDOW_MILLIS_MAX`. */
export interface StatedThrottle {
  /** 0 to `LIMIT_MAX - 1`: what may be granted at once beyond the first. */
  readonly maxBurst: number;
  /** 1 to `LIMIT_MAX`, per period. */
  readonly count: number;
  /** 1 to `WINDOW_MILLIS_MAX`. */
  readonly periodMillis: number;
}

const RULE_FORM = /^(0|[1-9]\d*)\/([1-9]\d*)ms$/;
const THROTTLE_FORM = /^([1-9]\d*)\/([1-9]\d*)ms\+(0|[1-9]\d*)$/;

/** The one id of a rule, as `16/60000ms`. @param windowMillis both within the bounds of `StatedRule` */
export function statedRuleId(limit: number, windowMillis: number): string {
  return `${limit}/${windowMillis}ms`;
}

/** A stated rule, so every partition can answer a look by it. The answer shows that a leader has a quorum, and which version of the rules it has. */
export const ANY_RULE = statedRuleId(0, 1);

/** What `statedRuleId` was given; undefined if the id is none of its making, or beyond the bounds. */
export function parseStatedRule(ruleId: string): StatedRule | undefined {
  const [, limitText, windowText] = RULE_FORM.exec(ruleId) ?? [];
  const limit = Number(limitText);
  const windowMillis = Number(windowText);
  if (!isBoundedInteger(limit, 0, LIMIT_MAX) || !isBoundedInteger(windowMillis, 1, WINDOW_MILLIS_MAX)) {
    return undefined;
  }
  return { limit, windowMillis };
}

/** The one id of such a call, as `30/60000ms+15`. @param throttle within its bounds */
export function statedThrottleId({ maxBurst, count, periodMillis }: StatedThrottle): string {
  return `${count}/${periodMillis}ms+${maxBurst}`;
}

/** What `statedThrottleId` was given; undefined if the id is none of its making, or beyond the bounds. */
export function parseStatedThrottle(ruleId: string): StatedThrottle | undefined {
  const [, countText, periodText, burstText] = THROTTLE_FORM.exec(ruleId) ?? [];
  const count = Number(countText);
  const periodMillis = Number(periodText);
  const maxBurst = Number(burstText);
  const isBounded =
    isBoundedInteger(count, 1, LIMIT_MAX) &&
    isBoundedInteger(periodMillis, 1, WINDOW_MILLIS_MAX) &&
    isBoundedInteger(maxBurst, 0, LIMIT_MAX - 1) &&
    // Both products are below 2^53.
    (maxBurst + 1) * periodMillis <= WINDOW_MILLIS_MAX * count;
  return isBounded ? { maxBurst, count, periodMillis } : undefined;
}

/** Does the id say all there is to know of its rule? No rule of the table may have such an id. */
export function isStatedId(ruleId: string): boolean {
  return parseStatedRule(ruleId) !== undefined || parseStatedThrottle(ruleId) !== undefined;
}
