/**
 * The answer to a request for a grant, the same for every protocol. These are plain data types: each listener writes
 * them in the format of its protocol.
 */
import type { CustomerRecord } from './customer-record.ts';
import type { UnavailableReason } from './refusals.ts';

/**
 * The place in a partition's log where a decision was made. For a grant: the log entry that made it. For a denial:
 * the state it was read from, which is the state after the whole entry `index`.
 */
export interface Receipt {
  readonly term: number;
  readonly index: number;
  /**
   * The position of the request within the entry, from 0. No two requests have the same `index` and `position`.
   * Absent for a denial that was read from the state, because no entry made it.
   */
  readonly position?: number;
  /**
   * The time the decision used, in milliseconds since 1970, after clamping to the group's time. A grant is recorded
   * with this time.
   */
  readonly timeMillis: number;
}

/** The status of a key under one rule. All numbers are integers >= 0. */
export interface LimitStatus {
  /** The id of the rule that decided, or that was asked about. */
  readonly ruleId: string;
  /** The limit for this key: cost per window. */
  readonly limit: number;
  /** The window of the rule as it was configured, without the tolerance that is added for group time. */
  readonly windowMillis: number;
  /**
   * The cost that still fits at the time of the decision. After a grant, the cost of this request is already
   * subtracted.
   */
  readonly remaining: number;
  /**
   * Milliseconds until a request of the same cost would be granted if nothing else is granted before. After a grant
   * it is for a request of cost 1, for a peek it is for the cost of the peek. 0 means now. If the cost is above the
   * limit, the request never fits, and this is the window of the rule. Under a limit of 0 no wait helps, and
   * listeners report no wait (see `waitHelps`).
   */
  readonly retryAfterMillis: number;
  /** Milliseconds until the whole limit is available again if nothing else is granted. */
  readonly resetMillis: number;
  /**
   * Above 0: the cluster was restored from a backup or recovered, and grants may be missing. The rule denies every
   * request for this many milliseconds, until all grants that may be missing have left the window. Absent: nothing is
   * missing.
   */
  readonly restoredMillis?: number;
}

/**
 * The decision of a limit about a request. Durations count from the time that the request asked for (its timestamp,
 * or group time), not from the possibly later time it was clamped to.
 */
export interface Decision extends LimitStatus {
  readonly allowed: boolean;
  /**
   * Only for a grant by a `leakyBucket` that has to queue: milliseconds the client must wait before it goes on. A
   * client that waits this long keeps to the rate.
   */
  readonly waitMillis?: number;
  readonly decided: Receipt;
  /**
   * The version of the rules in force where the decision was made: at the log entry of a grant, or in the state that
   * a denial was read from. All limits of one request are decided under one version.
   */
  readonly rulesVersion: number;
  /**
   * Only for a request under several limits: the status of every limit, in the order of the limits. The decision
   * itself is that of the limit that binds. If limits deny, that is the denying limit with the longest wait.
   * Otherwise it is the limit with the least remaining.
   */
  readonly limits?: readonly LimitStatus[];
  /**
   * An operator blocked a key or the customer of this request. It is denied even if the limits have room, until the
   * block ends or an operator removes it. All numbers are 0, except `retryAfterMillis` if the block has an end.
   */
  readonly isBlocked?: true;
}

/** The request is malformed and cannot be decided as it is. */
export interface Invalid {
  readonly kind: 'invalid';
  /** The name that callers use: a `RequestField`, or the listener's name for another part of what was sent. */
  readonly field: string;
  /** Names the field and its allowed range. */
  readonly message: string;
}

/**
 * The fields in which two requests with the same request id may differ, by the names that callers use. `requestId`
 * means that the grant under this id was refunded.
 */
export const CONFLICT_FIELDS = ['rule', 'cost', 'timestampMillis', 'requestId', 'descriptors'] as const;
/** One of `CONFLICT_FIELDS`. */
export type ConflictField = (typeof CONFLICT_FIELDS)[number];

/**
 * The request id was already used by another request, which differs in `field`, or by a request that was refunded.
 * Nothing was charged.
 */
export interface ConflictingId {
  readonly kind: 'conflict';
  readonly field: ConflictField;
  readonly message: string;
}

/**
 * The request is denied because no node could decide it (promise P3). If `proposed` is false, the request
 * certainly did not reach a log.
 */
export interface Unavailable {
  readonly kind: 'unavailable';
  readonly reason: UnavailableReason;
  readonly proposed: boolean;
  /** Only with reason `customer_changed`: the current record of the customer. */
  readonly record?: CustomerRecord;
}

/** The answer to an `AllowRequest`. Only a decision with `allowed` is a grant. */
export type AllowAnswer =
  | {
      readonly kind: 'decision';
      readonly decision: Decision;
      /**
       * This is the grant of an earlier attempt with the same request id. Set only if the limits were found by rules.
       */
      readonly isRepeat?: true;
    }
  | Invalid
  | ConflictingId
  | Unavailable;
