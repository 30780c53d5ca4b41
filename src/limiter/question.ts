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

/** One object for many requests, one after the other. */
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

  /** It is `request` from now on. Returns itself. */
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

export function questionOf(request: AllowRequest): Question {
  return new ReusedQuestion().set(request);
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
