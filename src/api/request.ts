/**
 * A request for a grant as partitions receive it, the bounds of its fields, and the function that checks them. The
 * request names its limits; `question.ts` has the form in which the rules find them.
 */
import type { Invalid } from './answer.ts';
import { isBoundedInteger, isBoundedText } from './bounded.ts';
import type { CustomerGuard } from './customer-record.ts';

// A node refuses messages of other nodes that exceed its own bounds, and breaks the connection. So other bounds need
// a new version (`versions.ts`).
/** The longest `userId` that callers may name, in UTF-8 bytes. */
export const USER_ID_BYTES_MAX = 256;
/**
 * The longest key that a limit counts by, in UTF-8 bytes. The longest user id fits into it, even if all its
 * characters are escaped.
 */
export const KEY_BYTES_MAX = 1_024;
/** The longest rule id in UTF-8 bytes. */
export const RULE_ID_BYTES_MAX = 128;
/** The largest cost of one request; the smallest is 1. */
export const COST_MAX = 1_000_000;
/**
 * The latest time that a caller may name, in milliseconds since 1970: the last one that a JavaScript `Date` can hold.
 */
export const TIMESTAMP_MILLIS_MAX = 8_640_000_000_000_000;
/** The longest request id in UTF-8 bytes. */
export const REQUEST_ID_BYTES_MAX = 128;
/** The most limits that one request may be under. */
export const LIMITS_PER_REQUEST_MAX = 16;
/** The largest `AllowRequest.attempt`. */
export const ATTEMPT_MAX = Number.MAX_SAFE_INTEGER;
/** The largest `AllowRequest.askedDigest`. */
export const ASKED_DIGEST_MAX = 2 ** 48 - 1;

/** One more limit that must grant a request. */
export interface FurtherLimit {
  /** The key (see `AllowRequest.userId`) that it counts by, in the same partition as the request's `userId`. */
  readonly userId: string;
  /** 1 to `RULE_ID_BYTES_MAX` bytes. */
  readonly ruleId: string;
  /** 1 to `COST_MAX`; absent means 1. */
  readonly cost?: number | undefined;
  /** See `AllowRequest.settle`. */
  readonly settle?: true | undefined;
}

/** A request for a grant, as a partition receives it. */
export interface AllowRequest {
  /** Absent. The other kinds of `UserRequest` have their kind here. */
  readonly ask?: undefined;
  /**
   * The key whose budget is used, such as `user=ada` or `ip/24=10.1.2.0`: 1 to `KEY_BYTES_MAX` bytes. Partitions, the
   * router and messages between nodes call a key `userId`; only in `Question` is it the user.
   */
  readonly userId: string;
  /** The id of the rule, 1 to `RULE_ID_BYTES_MAX` bytes. Absent: the default rule at the time of the decision. */
  readonly ruleId?: string | undefined;
  /** 1 to `COST_MAX`; absent means 1. */
  readonly cost?: number | undefined;
  /**
   * The time of the event in milliseconds since 1970, 0 to `TIMESTAMP_MILLIS_MAX`. Absent: group time. Rules with the
   * `cluster` clock refuse it.
   */
  readonly timestampMillis?: number | undefined;
  /**
   * Makes a retry safe: 1 to `REQUEST_ID_BYTES_MAX` bytes. Within the request id horizon it must be unique per key
   * (`userId`).
   */
  readonly requestId?: string | undefined;
  /**
   * The other limits of the request; `ruleId` names the first. Either all of them grant it, or none does. All are in
   * one partition, each appears once, at most `LIMITS_PER_REQUEST_MAX - 1`.
   */
  readonly further?: readonly FurtherLimit[] | undefined;
  /**
   * A digest of the whole question of the caller, if the rules found the limits. It identifies a retry even if other
   * rules are in force by then. 1 to `ASKED_DIGEST_MAX`; required with `further`.
   */
  readonly askedDigest?: number | undefined;
  /**
   * The unique number of this attempt at a request whose limits are in several partitions. The ids of its
   * reservations in the other partitions are derived from it. The partition remembers it with the grant and returns
   * it in the answer to a refund, so that the node can refund the reservations too. 1 to `ATTEMPT_MAX`; requires a
   * `requestId` and an `askedDigest`.
   */
  readonly attempt?: number | undefined;
  /**
   * Grants nothing now. It only asks whether the request was already granted under its id. Requires a `requestId` and
   * an `askedDigest`. It goes through the log, so the answer "no" proves that no earlier grant exists.
   */
  readonly ifRemembered?: true | undefined;
  /**
   * The rule version that the limits were found by. Absent: the caller named the limits. A partition with another
   * rule version refuses the request, and the asking node matches it again. Not part of the log entry.
   */
  readonly matchedBy?: number | undefined;
  /**
   * Usage that is reported after the fact (post-paid). The limit of `ruleId` records the cost even if it does not fit
   * and even if the key is blocked. The part above the limit is debt: later requests are denied until it has left the
   * window. Each limit of `further` has its own flag.
   */
  readonly settle?: true | undefined;
  /**
   * The record of the customer that the request was matched with. If the record has changed by now, the request
   * counts nowhere.
   */
  readonly guard?: CustomerGuard | undefined;
}

/** The fields by the names that callers use. Every answer that names a field uses these. `rule` is `ruleId`. */
export const REQUEST_FIELDS = ['userId', 'timestampMillis', 'cost', 'rule', 'requestId'] as const;
/** One of `REQUEST_FIELDS`. */
export type RequestField = (typeof REQUEST_FIELDS)[number];

/**
 * The first field that has a wrong type or is out of its bounds. Undefined if the request is well-formed. Listeners
 * and the decoders of messages between nodes refuse such requests; the code behind them relies on it. Whether a
 * timestamp is too far in the future needs a clock, so the leader checks that.
 */
export function invalidIn(request: AllowRequest): Invalid | undefined {
  const { userId, ruleId, cost, timestampMillis, requestId } = request;
  if (!isBoundedText(userId, KEY_BYTES_MAX)) return noText('userId', KEY_BYTES_MAX);
  if (ruleId !== undefined && !isBoundedText(ruleId, RULE_ID_BYTES_MAX)) {
    return noText('rule', RULE_ID_BYTES_MAX);
  }
  if (cost !== undefined && !isBoundedInteger(cost, 1, COST_MAX)) return noInteger('cost', 1, COST_MAX);
  if (timestampMillis !== undefined && !isBoundedInteger(timestampMillis, 0, TIMESTAMP_MILLIS_MAX)) {
    return noInteger('timestampMillis', 0, TIMESTAMP_MILLIS_MAX);
  }
  if (requestId !== undefined && !isBoundedText(requestId, REQUEST_ID_BYTES_MAX)) {
    return noText('requestId', REQUEST_ID_BYTES_MAX);
  }
  return request.further === undefined && request.askedDigest === undefined
    ? undefined
    : invalidInLimits(request);
}

function invalidInLimits({ userId, ruleId, further = [], askedDigest }: AllowRequest): Invalid | undefined {
  if (!isBoundedInteger(askedDigest, 1, ASKED_DIGEST_MAX))
    return wrongLimits('limits must come with an askedDigest');
  if (further.length >= LIMITS_PER_REQUEST_MAX)
    return wrongLimits(`limits must be at most ${LIMITS_PER_REQUEST_MAX}`);
  if (further.length > 0 && ruleId === undefined) return wrongLimits('limits must each have a ruleId');
  const seen = new Set([limitName({ userId, ruleId: ruleId ?? '' })]);
  for (const limit of further) {
    const wrong = invalidIn({ userId: limit.userId, ruleId: limit.ruleId, cost: limit.cost });
    if (wrong !== undefined) return wrong;
    const name = limitName(limit);
    if (seen.has(name)) return wrongLimits('limits must be different from each other');
    seen.add(name);
  }
  return undefined;
}

function limitName({ userId, ruleId }: FurtherLimit): string {
  return `${ruleId.length}:${ruleId}${userId}`;
}

function wrongLimits(message: string): Invalid {
  return { kind: 'invalid', field: 'limits', message };
}

function noText(field: RequestField, maxBytes: number): Invalid {
  return { kind: 'invalid', field, message: `${field} must be text of 1 to ${maxBytes} bytes` };
}

function noInteger(field: RequestField, min: number, max: number): Invalid {
  return { kind: 'invalid', field, message: `${field} must be an integer from ${min} to ${max}` };
}
