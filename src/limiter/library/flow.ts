/** A rate per second as a limit and a window, both of them integers. */

import { isBoundedInteger } from '../../api/bounded.ts';
import { LIMIT_MAX, type Rule } from '../../api/rule.ts';
import { InvalidLimiterArgumentError } from './arguments.ts';

const SECOND_MILLIS = 1_000;
/** Parts of one per second that a rate may have. */
const PARTS = 1_000;

/** @throws InvalidLimiterArgumentError naming `field` */
export function flowOf(field: string, perSecond: number): Pick<Rule, 'limit' | 'windowMillis'> {
  if (isBoundedInteger(perSecond, 1, LIMIT_MAX)) return { limit: perSecond, windowMillis: SECOND_MILLIS };
  const limit = Math.round(perSecond * PARTS);
  if (isBoundedInteger(limit, 1, LIMIT_MAX) && limit / PARTS === perSecond) {
    return { limit, windowMillis: SECOND_MILLIS * PARTS };
  }
  const bound = `an integer from 1 to ${LIMIT_MAX}, or a multiple of 0.001 up to ${LIMIT_MAX / PARTS}`;
  throw new InvalidLimiterArgumentError(field, bound, perSecond);
}
