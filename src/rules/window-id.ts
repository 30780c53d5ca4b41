/**
 * Names the windows of a rule: by the name that the author gave, else by the period. Grants are stored under that
 * name, so the order of windows in a rule does not matter.
 */
import { type LimitWindow, type RuleDefinition, UNIT_MILLIS } from './rule-definition.ts';

const UNITS = Object.entries(UNIT_MILLIS);
const MILLIS = /^\d+ms$/;

/** The period as text: `day`, or `90000ms` if it is not a whole unit. */
export function periodOf(windowMillis: number): string {
  return UNITS.find(([, millis]) => millis === windowMillis)?.[0] ?? `${windowMillis}ms`;
}

/** The text is a period. A window must not have a period as its name, unless it is its own. */
export function isPeriod(text: string): boolean {
  return MILLIS.test(text) || UNITS.some(([unit]) => unit === text);
}

/** The name of a window, unique within its rule. */
export function windowName({ name, windowMillis }: LimitWindow): string {
  return name ?? periodOf(windowMillis);
}

/**
 * The name of a window that has the id of its rule: the only window of a rule from a table or stated by a request.
 */
export const LIKE_ITS_RULE = '';

/**
 * The id under which the limiter stores a window, such as `per-user/day`. The part after the last `/` is the
 * window.
 */
export function windowRuleId({ id }: Pick<RuleDefinition, 'id'>, window: LimitWindow): string {
  const name = windowName(window);
  return name === LIKE_ITS_RULE ? id : `${id}/${name}`;
}
