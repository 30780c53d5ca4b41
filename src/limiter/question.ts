/** A request as it is judged, and what may be found out of it first. Plain data; it decides nothing. */

import type { CustomerGuard } from '../api/customer-record.ts';
import type { AllowRequest } from '../api/request.ts';
import type { Fingerprint } from './fingerprint.ts';
import { DEFAULT_RULE } from './rules.ts';

/** One request, as it is asked. Whose it is, the state is told by `LimiterState.lookUp`. */
export interface Question extends Fingerprint {
  readonly hasRequestId: boolean;
  /** Only what was granted before, under its request id, is granted. */
  readonly ifRemembered: boolean;
  /** Neither a limit nor a block denies it. */
  readonly isSettled: boolean;
  /** See `AllowRequest.attempt`. */
  readonly attempt: number | undefined;
  /** The record that it was matched with. */
  readonly guard: CustomerGuard | undefined;
}

export function questionOf(request: AllowRequest): Question {
  // One object, and no copy of another: every request has one.
  return {
    ruleId: request.ruleId ?? DEFAULT_RULE,
    cost: request.cost ?? 1,
    timestampMillis: request.timestampMillis,
    hasRequestId: request.requestId !== undefined,
    askedDigest: request.askedDigest,
    ifRemembered: request.ifRemembered === true,
    isSettled: request.settle === true,
    attempt: request.attempt,
    guard: request.guard,
  };
}

/** What was found out first of a question, in this order. What `fits` may be granted. */
export type Outcome =
  | 'repeated'
  | 'not_remembered'
  | 'customer_changed'
  | 'blocked'
  | 'unknown_rule'
  | 'denied'
  | 'at_capacity'
  | 'fits';
