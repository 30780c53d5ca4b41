/**
 * Builds the decisions that no limit judged (refunds and refusals), and the receipts that say where in the log a
 * decision was made.
 */

import type { Receipt } from '../api/answer.ts';
import type { AllowRequest } from '../api/request.ts';
import type { Decision, Refusal } from './decision.ts';
import type { Conflict } from './question.ts';
import type { GrantView } from './state/remembered-grant.ts';

/** Where a decision is made. Without `position` it is read from the state after the whole entry. */
export interface DecidedAt {
  readonly term: number;
  readonly index: number;
  readonly position: number | undefined;
  /** The version of the rules in force there; 0 before the first rule table. */
  readonly rulesVersion: number;
}

/** The numbers of a decision that no limit judged. */
export const NOT_JUDGED = {
  allowed: false,
  ruleId: '',
  limit: 0,
  windowMillis: 0,
  remaining: 0,
  retryAfterMillis: 0,
  resetMillis: 0,
} as const;

/**
 * The answer to a refund.
 *
 * @param grant the grant that was refunded, now or earlier; undefined if no grant is remembered
 * @param nowMillis group time
 */
export function refundOf(grant: GrantView | undefined, place: DecidedAt, nowMillis: number): Decision {
  const attempt = grant?.attempt;
  return {
    ...NOT_JUDGED,
    ruleId: grant?.ruleId ?? '',
    decided: grant?.decision.decided ?? receiptAt(place, nowMillis),
    rulesVersion: grant?.decision.rulesVersion ?? place.rulesVersion,
    refund: {
      refunded: grant !== undefined,
      cost: grant?.fingerprint.cost ?? 0,
      ...(attempt !== undefined && { attempt }),
    },
  };
}

/** The answer to a request that was refused for `refusal`. @param nowMillis group time */
export function refusalOf(
  refusal: Refusal,
  ruleId: string,
  place: DecidedAt,
  nowMillis: number,
  conflict?: Conflict,
): Decision {
  return {
    ...NOT_JUDGED,
    ruleId,
    decided: receiptAt(place, nowMillis),
    rulesVersion: place.rulesVersion,
    refusal,
    ...(conflict !== undefined && { conflict }),
  };
}

/** The receipt of a decision made at a place in the log. `timeMillis` is the time the decision used. */
export function receiptAt({ term, index, position }: DecidedAt, timeMillis: number): Receipt {
  return position === undefined ? { term, index, timeMillis } : { term, index, position, timeMillis };
}

/**
 * The denial; undefined if it is based on a customer record that is older than the one the request was matched with. In
 * that case the entry with the newer record is not applied here yet.
 */
export function unlessOlder({ guard }: AllowRequest, denial: Decision): Decision | undefined {
  const { refusal, customer } = denial;
  const isOlder = refusal === 'customer_changed' && (customer?.record.version ?? 0) < (guard?.version ?? 0);
  return isOlder ? undefined : denial;
}

/** Is it denied because of the customer (a block, or a changed record), regardless of the limits? */
export function isOfCustomer({ isBlocked, refusal }: Decision): boolean {
  return isBlocked === true || refusal === 'customer_changed';
}
