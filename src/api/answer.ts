/**
 * What a request for a grant is answered, by every door. Plain data: how a door writes it down is the door's business,
 * who decided it is the cluster's.
 */
import type { CustomerRecord } from './customer-record.ts';
import type { UnavailableReason } from './refusals.ts';

/** Where a decision was made. For a grant, the entry that made it; for a denial, the state it was read from. */
export interface Receipt {
  readonly term: number;
  readonly index: number;
  /**
   * The request's place in the entry, from 0: no two requests share an index and a position. Absent where no entry
   * made the decision: a denial that was read from the state after the whole entry `index`.
   */
  readonly position?: number;
  /** The time the decision used, after clamping: the stamp a grant is recorded with. */
  readonly timeMillis: number;
}

/** How a key stands under a rule. All numbers are integers >= 0. */
export interface LimitStanding {
  /** The rule that was asked about, or decided. */
  readonly ruleId: string;
  readonly limit: number;
  /** The rule's window as it was stated, without the widening for group time. */
  readonly windowMillis: number;
  /** Cost that still fits at the time of the decision, this request included when granted. */
  readonly remaining: number;
  /**
   * Milliseconds until a request of the same cost (after a grant: of cost 1; for a look: of its cost) would be granted if nothing
   * else is; 0 means at once. A cost above the limit never fits: then this is the rule's window. Under a limit of 0 no wait helps,
   * and doors tell none (`waitHelps`).
   */
  readonly retryAfterMillis: number;
  /** Milliseconds until the whole limit is available again if nothing else is granted. */
  readonly resetMillis: number;
  /**
   * Above 0: the cluster was restored or recovered, and denies everybody under this rule for so long, whatever the key was granted:
   * until all that may be missing has left the window. Absent where nothing is missing.
   */
  readonly restoredMillis?: number;
}

/**
 * A request was judged by a limit. Durations count from the time the request asked for (its timestamp, or group time),
 * not from the possibly later time it was clamped to.
 */
export interface Decision extends LimitStanding {
  readonly allowed: boolean;
  /** Of a grant by a `leakyBucket` that has to queue: milliseconds until it may go on. Who goes on then keeps to the rate. */
  readonly waitMillis?: number;
  readonly decided: Receipt;
  /**
   * Of the rules that were in force where it was decided: at the entry of a grant, in the state that a denial was read from.
   * All limits of a request are decided by one version.
   */
  readonly rulesVersion: number;
  /**
   * Of a request under several limits: all of them, in their order. The answer itself is that of the one that binds: of those
   * that deny it the one that takes longest to grant it, else the one with least remaining.
   */
  readonly limits?: readonly LimitStanding[];
  /**
   * A key of it, or its customer, is blocked: denied whatever is free, until an operator takes that back. All numbers are 0, but for
   * `retryAfterMillis` where the block has an end: then it is denied no longer.
   */
  readonly isBlocked?: true;
}

/** What was asked can never be decided as it is. */
export interface Invalid {
  readonly kind: 'invalid';
  /** As callers know it: a `RequestField`, or what the door calls the rest of what was sent. */
  readonly field: string;
  /** Names the field, and the bound that it must keep. */
  readonly message: string;
}

/** What two requests under one request id may differ in, by the names that callers know; `requestId`: its grant was refunded. */
export const CONFLICT_FIELDS = ['rule', 'cost', 'timestampMillis', 'requestId', 'descriptors'] as const;
export type ConflictField = (typeof CONFLICT_FIELDS)[number];

/** Its request id belongs to another request, which differs in `field`, or to a refunded one. Nothing was charged. */
export interface ConflictingId {
  readonly kind: 'conflict';
  readonly field: ConflictField;
  readonly message: string;
}

/** Denied because nobody could decide (P3). `proposed` false: certainly nothing reached the log. */
export interface Unavailable {
  readonly kind: 'unavailable';
  readonly reason: UnavailableReason;
  readonly proposed: boolean;
  /** With `customer_changed`: what is known of the customer now. */
  readonly record?: CustomerRecord;
}

/** Nothing but a decision with `allowed` is a grant. */
export type AllowAnswer =
  | {
      readonly kind: 'decision';
      readonly decision: Decision;
      /** It is the grant of an earlier attempt under the same request id. Told where rules found the limits. */
      readonly isRepeat?: true;
    }
  | Invalid
  | ConflictingId
  | Unavailable;
