/**
 * Stated rules: rules that a request states itself instead of naming a rule of the table, because some protocols send
 * the limit with every request. The rule id contains the whole rule, so every node reads it alike. There are two
 * forms:
 *
 * - `100/60000ms`: a limit of 100 per 60 seconds. A key has a separate budget under each such id.
 * - `30/60000ms+15`: 30 per minute and a burst of 15 more, the numbers of a `CL.THROTTLE` command. A key has one
 *   state for all such ids, so other numbers do not give it another budget.
 */
import { isBoundedInteger } from './bounded.ts';
import { LIMIT_MAX, WINDOW_MILLIS_MAX } from './rule.ts';

/** The numbers of the first form. */
export interface StatedRule {
  /** 0 to `LIMIT_MAX`. */
  readonly limit: number;
  /** 1 to `WINDOW_MILLIS_MAX`. */
  readonly windowMillis: number;
}

/** The numbers of a `CL.THROTTLE` command. `(maxBurst + 1) * periodMillis / count` is at most `WINDOW_MILLIS_MAX`. */
export interface StatedThrottle {
  /** How many requests may be granted at once beyond the first request, 0 to `LIMIT_MAX - 1`. */
  readonly maxBurst: number;
  /** Grants per period, 1 to `LIMIT_MAX`. */
  readonly count: number;
  /** 1 to `WINDOW_MILLIS_MAX`. */
  readonly periodMillis: number;
}

const RULE_FORM = /^(0|[1-9]\d*)\/([1-9]\d*)ms$/;
const THROTTLE_FORM = /^([1-9]\d*)\/([1-9]\d*)ms\+(0|[1-9]\d*)$/;

/** The rule id for these numbers, such as `16/60000ms`. The numbers must be within the bounds of `StatedRule`. */
export function statedRuleId(limit: number, windowMillis: number): string {
  return `${limit}/${windowMillis}ms`;
}

/**
 * A stated rule for peeks that only check a partition: every partition can answer it without a rule table. The answer
 * proves that the leader has a quorum, and contains its rule version.
 */
export const ANY_RULE = statedRuleId(0, 1);

/** The numbers in an id of `statedRuleId`. Undefined if the id has another form, or a number is out of its bounds. */
export function parseStatedRule(ruleId: string): StatedRule | undefined {
  const [, limitText, windowText] = RULE_FORM.exec(ruleId) ?? [];
  const limit = Number(limitText);
  const windowMillis = Number(windowText);
  if (!isBoundedInteger(limit, 0, LIMIT_MAX) || !isBoundedInteger(windowMillis, 1, WINDOW_MILLIS_MAX)) {
    return undefined;
  }
  return { limit, windowMillis };
}

/** The rule id for a `CL.THROTTLE` command, such as `30/60000ms+15`. The numbers must be within their bounds. */
export function statedThrottleId({ maxBurst, count, periodMillis }: StatedThrottle): string {
  return `${count}/${periodMillis}ms+${maxBurst}`;
}

/**
 * The numbers in an id of `statedThrottleId`. Undefined if the id has another form, or a number is out of its bounds.
 */
export function parseStatedThrottle(ruleId: string): StatedThrottle | undefined {
  const [, countText, periodText, burstText] = THROTTLE_FORM.exec(ruleId) ?? [];
  const count = Number(countText);
  const periodMillis = Number(periodText);
  const maxBurst = Number(burstText);
  const isBounded =
    isBoundedInteger(count, 1, LIMIT_MAX) &&
    isBoundedInteger(periodMillis, 1, WINDOW_MILLIS_MAX) &&
    isBoundedInteger(maxBurst, 0, LIMIT_MAX - 1) &&
    // Both products are below 2^53, so this is exact.
    (maxBurst + 1) * periodMillis <= WINDOW_MILLIS_MAX * count;
  return isBounded ? { maxBurst, count, periodMillis } : undefined;
}

/** True if the id is that of a stated rule. No rule of the table may have such an id. */
export function isStatedId(ruleId: string): boolean {
  return parseStatedRule(ruleId) !== undefined || parseStatedThrottle(ruleId) !== undefined;
}
