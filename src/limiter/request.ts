/**
 * What a caller asks: one request to the limiter, and the check that nothing unacceptable enters the log.
 * A request that got into an entry can no longer be refused, only decided.
 */

import {
  COST_MAX,
  KEY_BYTES_MAX,
  REQUEST_ID_BYTES_MAX,
  RULE_ID_BYTES_MAX,
  TIMESTAMP_MILLIS_MAX,
} from './rules.ts';
import { isBoundedInteger, isBoundedText } from './text.ts';

export interface AllowRequest {
  /** Whose budget is asked for: 1 to `KEY_BYTES_MAX` bytes. */
  readonly userId: string;
  /** The rule to decide by; absent means the default rule at the time of the decision. */
  readonly ruleId?: string | undefined;
  /** 1 to `COST_MAX`; absent means 1. */
  readonly cost?: number | undefined;
  /** Event time, 0 to `TIMESTAMP_MILLIS_MAX`; absent means group time. Ignored by rules with the `cluster` clock. */
  readonly timestampMillis?: number | undefined;
  /** Makes a retry safe: 1 to `REQUEST_ID_BYTES_MAX` bytes, unique per user and rule within the horizon. */
  readonly requestId?: string | undefined;
}

/** A request is not acceptable. `field` is the name of the offending field of `AllowRequest`. */
export class InvalidRequestError extends RangeError {
  override readonly name = 'InvalidRequestError';
  readonly code = 'INVALID_REQUEST';
  readonly field: string;

  constructor(field: string, bound: string) {
    super(`${field} must be ${bound}`);
    this.field = field;
  }
}

/**
 * Checks every field of a request against its bounds. Whether a timestamp is too far ahead of group time is for
 * the caller to check: that needs a clock.
 *
 * @throws InvalidRequestError naming the first field out of bounds
 */
export function checkRequest(request: AllowRequest): void {
  requireText('userId', request.userId, KEY_BYTES_MAX);
  if (request.ruleId !== undefined) requireText('ruleId', request.ruleId, RULE_ID_BYTES_MAX);
  if (request.cost !== undefined) requireInteger('cost', request.cost, 1, COST_MAX);
  if (request.timestampMillis !== undefined) {
    requireInteger('timestampMillis', request.timestampMillis, 0, TIMESTAMP_MILLIS_MAX);
  }
  if (request.requestId !== undefined) requireText('requestId', request.requestId, REQUEST_ID_BYTES_MAX);
}

function requireText(field: string, value: unknown, maxBytes: number): void {
  if (!isBoundedText(value, maxBytes)) throw new InvalidRequestError(field, `text of 1 to ${maxBytes} bytes`);
}

function requireInteger(field: string, value: unknown, min: number, max: number): void {
  if (!isBoundedInteger(value, min, max)) {
    throw new InvalidRequestError(field, `an integer from ${min} to ${max}`);
  }
}
