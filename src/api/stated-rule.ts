/**
 * Rules that a request states itself, instead of naming one of the table: some protocols give the limit with every request. A
 * rule id of this form says all there is to know, so that everybody reads it alike, and keys under it share their grants.
 */
import { isBoundedInteger } from './bounded.ts';
import { LIMIT_MAX, WINDOW_MILLIS_MAX } from './rule.ts';

export interface StatedRule {
  /** 0 to `LIMIT_MAX`. */
  readonly limit: number;
  /** 1 to `WINDOW_MILLIS_MAX`. */
  readonly windowMillis: number;
}

const FORM = /^(0|[1-9]\d*)\/([1-9]\d*)ms$/;

/** The one id of a rule, as `16/60000ms`. @param windowMillis both within the bounds of `StatedRule` */
export function statedRuleId(limit: number, windowMillis: number): string {
  return `${limit}/${windowMillis}ms`;
}

/** What `statedRuleId` was given; undefined if the id is none of its making, or beyond the bounds. */
export function parseStatedRule(ruleId: string): StatedRule | undefined {
  const [, limitText, windowText] = FORM.exec(ruleId) ?? [];
  const limit = Number(limitText);
  const windowMillis = Number(windowText);
  if (!isBoundedInteger(limit, 0, LIMIT_MAX) || !isBoundedInteger(windowMillis, 1, WINDOW_MILLIS_MAX)) {
    return undefined;
  }
  return { limit, windowMillis };
}
