/** What the limiter answers, beyond the decisions that every door knows. Plain data only. */

import type { Decision as Judged } from '../api/answer.ts';
import type { CustomerRecord } from '../api/customer-record.ts';
import type { Refund } from '../api/refund.ts';
import type { Conflict } from './fingerprint.ts';

/** A place in the log and the group time stamped there. */
export interface AppliedPosition {
  readonly index: number;
  readonly term: number;
  /** Group time in milliseconds; never decreases along a log. */
  readonly timeMillis: number;
}

/**
 * Why a request was not judged by a limit.
 * - `unknown_rule`: there is no such rule
 * - `request_id_reused`: its request id belongs to another request; see `Decision.conflict`
 * - `refunded`: the grant under its request id was taken back, and the id grants nothing more
 * - `at_capacity`: it would have been granted, but there is no room to remember that
 * - `not_remembered`: it asked for the grant under its request id, and there is none
 * - `customer_changed`: it was matched with another record of a key than there is; see `Decision.customer`
 */
export type Refusal =
  | 'unknown_rule'
  | 'request_id_reused'
  | 'refunded'
  | 'at_capacity'
  | 'not_remembered'
  | 'customer_changed';

/** The answer to one request: judged by a limit, or refused; or what became of a refund. */
export interface Decision extends Judged {
  /** The rule that decided; '' when the default rule was meant and there is no table yet. */
  readonly ruleId: string;
  /** Present when the request was not judged by a limit at all. It is not allowed then, and all numbers are 0. */
  readonly refusal?: Refusal;
  /** Present with `request_id_reused`. */
  readonly conflict?: Conflict;
  /** Present where a refund was asked for: nothing is allowed then, and `decided` is that of `Refund`. */
  readonly refund?: Pick<Refund, 'refunded' | 'cost' | 'attempt'>;
  /** Present where a record was asked for or changed, and with `customer_changed`: as it is now. Nothing is allowed then. */
  readonly customer?: { readonly isDone: boolean; readonly record: CustomerRecord };
  /** Present where more was to be used than `ruleId` may grant at once: no more than this. Nothing has changed then. */
  readonly usedMax?: number;
}
