/**
 * What a window of a rule is called: its period, or the name that its author gave it. Grants belong to that, wherever the window
 * stands in its rule.
 */
import { type LimitWindow, type RuleDefinition, UNIT_MILLIS } from './rule-definition.ts';

const UNITS = Object.entries(UNIT_MILLIS);
const MILLIS = /^\d+ms$/;

/** As `day`, or `90000ms` where it is no unit. */
export function periodOf(windowMillis: number): string {
  return UNITS.find(([, millis]) => millis === windowMillis)?.[0] ?? `${windowMillis}ms`;
}

/** No name that says a length may be given to a window of another one. */
export function isPeriod(text: string): boolean {
  return MILLIS.test(text) || UNITS.some(([unit]) => unit === text);
}

/** Unique among the windows of its rule. */
export function windowName({ name, windowMillis }: LimitWindow): string {
  return name ?? periodOf(windowMillis);
}

/** The name of a window that is called like its rule: the only one of a rule of a table, or of one that a request states. */
export const LIKE_ITS_RULE = '';

/** The id under which the limiter keeps a window, as `per-user/day`. What follows the last `/` is the window. */
export function windowRuleId({ id }: Pick<RuleDefinition, 'id'>, window: LimitWindow): string {
  const name = windowName(window);
  return name === LIKE_ITS_RULE ? id : `${id}/${name}`;
}
