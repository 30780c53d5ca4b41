/**
 * The type of the limiter's answers: the decision that every listener knows, plus what only the limiter and its callers
 * need.
 */

import type { Decision as Judged } from '../api/answer.ts';
import type { CustomerRecord } from '../api/customer-record.ts';
import type { Refund } from '../api/refund.ts';
import type { Conflict } from './question.ts';

/** The position of an entry in the log and the group time stamped on it. */
export interface AppliedPosition {
  readonly index: number;
  readonly term: number;
  /** Group time in milliseconds; never decreases along a log. */
  readonly timeMillis: number;
}

/**
 * Why no limit judged a request.
 * - `unknown_rule`: there is no such rule
 * - `request_id_reused`: its request id belongs to a different request; see `Decision.conflict`
 * - `refunded`: the grant under its request id was refunded; the id grants nothing more
 * - `at_capacity`: it fits the limit, but there is no memory left to record the grant
 * - `not_remembered`: it asked only for the grant under its request id, and there is none
 * - `customer_changed`: it was matched with an outdated customer record; see `Decision.customer`
 */
export type Refusal =
  | 'unknown_rule'
  | 'request_id_reused'
  | 'refunded'
  | 'at_capacity'
  | 'not_remembered'
  | 'customer_changed';

/** The answer to one request: judged by a limit, or refused, or the result of a refund or of a customer command. */
export interface Decision extends Judged {
  /** The rule that decided; '' if the default rule was meant and there is no rule table yet. */
  readonly ruleId: string;
  /** Present if no limit judged the request. It is not allowed then, and all numbers are 0. */
  readonly refusal?: Refusal;
  /** Present with `request_id_reused`. */
  readonly conflict?: Conflict;
  /** Present in the answer to a refund. `allowed` is false then, and `decided` is the `decided` of `Refund`. */
  readonly refund?: Pick<Refund, 'refunded' | 'cost' | 'attempt'>;
  /**
   * Present in the answer to a customer command, and with `customer_changed`: the record as it is now. `allowed` is
   * false then.
   */
  readonly customer?: { readonly isDone: boolean; readonly record: CustomerRecord };
  /**
   * Present if an operator set a usage above what `ruleId` may grant at once: this is the maximum. Nothing has changed
   * then.
   */
  readonly usedMax?: number;
}
