/** A rule that a request brings along: its id says all of it, `<limit>/<windowMillis>ms`. */
import { LIMIT_MAX, WINDOW_MILLIS_MAX } from './rule.ts';

const STATED = /^([1-9]\d{0,9})\/([1-9]\d{0,9})ms$/;

export interface StatedRule {
  /** 1 to `LIMIT_MAX`. */
  readonly limit: number;
  /** 1 to `WINDOW_MILLIS_MAX`. */
  readonly windowMillis: number;
}

/** The id of the rule that grants a cost of `limit` in any `windowMillis`. */
export function statedRuleId(limit: number, windowMillis: number): string {
  return `${limit}/${windowMillis}ms`;
}

/** What an id states; undefined if it has another form, or is out of bounds. */
export function parseStatedRule(ruleId: string): StatedRule | undefined {
  const [, limit, windowMillis] = STATED.exec(ruleId)?.map(Number) ?? [];
  if (limit === undefined || windowMillis === undefined) return undefined;
  return limit <= LIMIT_MAX && windowMillis <= WINDOW_MILLIS_MAX ? { limit, windowMillis } : undefined;
}
