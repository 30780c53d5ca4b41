/** A request in the form in which it is judged, and the list of possible outcomes. Plain data; it decides nothing. */

import type { CustomerGuard } from '../api/customer-record.ts';
import type { AllowRequest } from '../api/request.ts';
import type { Fingerprint } from './fingerprint.ts';
import { DEFAULT_RULE } from './rules.ts';

/**
 * One request under one limit. The key is not part of it: `LimiterState.lookUp` sets the key before the request is
 * judged.
 */
export interface Question extends Fingerprint {
  readonly hasRequestId: boolean;
  /** Grant only if this request id was granted before. */
  readonly ifRemembered: boolean;
  /** The cost is settled (already spent): neither a limit nor a block denies it. */
  readonly isSettled: boolean;
  /** See `AllowRequest.attempt`. */
  readonly attempt: number | undefined;
  /** The version of the customer record that the request was matched with. */
  readonly guard: CustomerGuard | undefined;
}

/** A question whose object is reused for many requests, one after the other. */
export class ReusedQuestion implements Question {
  ruleId = DEFAULT_RULE;
  cost = 1;
  timestampMillis: number | undefined = undefined;
  hasRequestId = false;
  askedDigest: number | undefined = undefined;
  ifRemembered = false;
  isSettled = false;
  attempt: number | undefined = undefined;
  guard: CustomerGuard | undefined = undefined;

  /** Takes over the fields of `request`. Returns itself. */
  set(request: AllowRequest): this {
    this.ruleId = request.ruleId ?? DEFAULT_RULE;
    this.cost = request.cost ?? 1;
    this.timestampMillis = request.timestampMillis;
    this.hasRequestId = request.requestId !== undefined;
    this.askedDigest = request.askedDigest;
    this.ifRemembered = request.ifRemembered === true;
    this.isSettled = request.settle === true;
    this.attempt = request.attempt;
    this.guard = request.guard;
    return this;
  }
}

/** A new question with the fields of `request`. */
export function questionOf(request: AllowRequest): Question {
  return new ReusedQuestion().set(request);
}

/** The result of judging a question, in the order of the checks. Only `fits` may be granted. */
export type Outcome =
  | 'repeated'
  | 'not_remembered'
  | 'customer_changed'
  | 'blocked'
  | 'unknown_rule'
  | 'denied'
  | 'at_capacity'
  | 'fits';
