/** Checks the arguments of the library's classes. */

import { isBoundedInteger, isBoundedText } from '../../api/bounded.ts';
import { COST_MAX, USER_ID_BYTES_MAX, TIMESTAMP_MILLIS_MAX } from '../../api/request.ts';
import { LIMIT_MAX, WINDOW_MILLIS_MAX } from '../../api/rule.ts';

/** An argument of a limiter is out of range. `field` names it. */
export class InvalidLimiterArgumentError extends RangeError {
  override readonly name = 'InvalidLimiterArgumentError';
  readonly code = 'INVALID_LIMITER_ARGUMENT';
  readonly field: string;

  constructor(field: string, bound: string, value: string | number) {
    super(`${field} must be ${bound}, but is ${value === '' ? 'empty' : String(value).slice(0, 64)}`);
    this.field = field;
  }
}

/** @throws InvalidLimiterArgumentError unless `value` is an integer from `min` to `max` */
export function requireInteger(field: string, value: number, min: number, max: number): void {
  if (!isBoundedInteger(value, min, max)) {
    throw new InvalidLimiterArgumentError(field, `an integer from ${min} to ${max}`, value);
  }
}

/** Checks the limit and window that every limiter takes; the ranges are those of a rule. */
export function requireLimit(limit: number, windowMillis: number): void {
  requireInteger('limit', limit, 0, LIMIT_MAX);
  requireInteger('windowMillis', windowMillis, 1, WINDOW_MILLIS_MAX);
}

/** @throws InvalidLimiterArgumentError unless it is 1 to `USER_ID_BYTES_MAX` bytes of UTF-8 */
export function requireUserId(userId: string): void {
  if (!isBoundedText(userId, USER_ID_BYTES_MAX)) {
    throw new InvalidLimiterArgumentError('userId', `text of 1 to ${USER_ID_BYTES_MAX} bytes`, userId);
  }
}

/** @throws InvalidLimiterArgumentError unless it is an integer from 0 to `TIMESTAMP_MILLIS_MAX` */
export function requireTimestamp(field: string, timestampMillis: number): void {
  requireInteger(field, timestampMillis, 0, TIMESTAMP_MILLIS_MAX);
}

/** @throws InvalidLimiterArgumentError unless it is an integer from 1 to `COST_MAX` */
export function requireCost(cost: number): void {
  requireInteger('cost', cost, 1, COST_MAX);
}
