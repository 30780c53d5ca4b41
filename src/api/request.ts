/**
 * What a caller asks, by every door: one request for a grant, the bounds of its fields, and the one function that says
 * whether it is well-formed. Whether it can be decided under the rules in force is not said here.
 */
import type { Invalid } from './answer.ts';
import { isBoundedInteger, isBoundedText } from './bounded.ts';
import type { CustomerGuard } from './customer-record.ts';

// A node refuses frames with what is beyond its bounds, and breaks the connection: other bounds need a new version (`versions.ts`).
/** The longest `userId` that callers may name, in UTF-8 bytes. */
export const USER_ID_BYTES_MAX = 256;
/** The longest key that a limit counts by, in UTF-8 bytes: the longest user id has one, whatever letters it has. */
export const KEY_BYTES_MAX = 1_024;
/** The longest rule id in UTF-8 bytes. */
export const RULE_ID_BYTES_MAX = 128;
/** The largest cost of one request; the smallest is 1. */
export const COST_MAX = 1_000_000;
/** The latest time a caller may name: the last one a JavaScript date can hold. */
export const TIMESTAMP_MILLIS_MAX = 8_640_000_000_000_000;
/** The longest request id in UTF-8 bytes. */
export const REQUEST_ID_BYTES_MAX = 128;
/** The most limits that one request is under. */
export const LIMITS_PER_REQUEST_MAX = 16;
/** The largest `AllowRequest.attempt`. */
export const ATTEMPT_MAX = Number.MAX_SAFE_INTEGER;
/** The largest `AllowRequest.askedDigest`. */
export const ASKED_DIGEST_MAX = 2 ** 48 - 1;

/** One more limit that must grant a request. */
export interface FurtherLimit {
  /** The key that it counts by: 1 to `KEY_BYTES_MAX` bytes, of the partition of the request's `userId`. */
  readonly userId: string;
  /** 1 to `RULE_ID_BYTES_MAX` bytes. */
  readonly ruleId: string;
  /** 1 to `COST_MAX`; absent means 1. */
  readonly cost?: number | undefined;
  /** See `AllowRequest.settle`. */
  readonly settle?: true | undefined;
}

export interface AllowRequest {
  /** What else may be asked about a user says so here: see `UserRequest`. */
  readonly ask?: undefined;
  /** Whose budget is asked for: 1 to `KEY_BYTES_MAX` bytes. */
  readonly userId: string;
  /** The rule to decide by, 1 to `RULE_ID_BYTES_MAX` bytes; absent means the default rule at the time of the decision. */
  readonly ruleId?: string | undefined;
  /** 1 to `COST_MAX`; absent means 1. */
  readonly cost?: number | undefined;
  /** Event time, 0 to `TIMESTAMP_MILLIS_MAX`; absent means group time. Refused by rules with the `cluster` clock. */
  readonly timestampMillis?: number | undefined;
  /** Makes a retry safe: 1 to `REQUEST_ID_BYTES_MAX` bytes, unique per user and rule within the horizon. */
  readonly requestId?: string | undefined;
  /**
   * The other limits that the request is under, if `ruleId` names the first: all of them grant it, or none. Of one partition,
   * none twice, up to `LIMITS_PER_REQUEST_MAX - 1`.
   */
  readonly further?: readonly FurtherLimit[] | undefined;
  /**
   * Stands for all that the caller asked, where the limits were found by rules: a retry is known by it, though other rules
   * may be in force meanwhile. 1 to `ASKED_DIGEST_MAX`; there must be one with `further`.
   */
  readonly askedDigest?: number | undefined;
  /**
   * The number of this attempt at a request whose limits are in several partitions; no other attempt has it. The ids of its
   * reservations in the other partitions are made of it. The partition remembers it with the grant and names it in the answer to a
   * refund, so that the node can refund the reservations as well. 1 to `ATTEMPT_MAX`; needs a `requestId` and an `askedDigest`.
   */
  readonly attempt?: number | undefined;
  /**
   * Nothing is granted now: was it before, under its id? There must be one, and an `askedDigest`. It goes through the log, so
   * that whoever is told no knows that no grant was made before.
   */
  readonly ifRemembered?: true | undefined;
  /**
   * The version of the rules that the limits were found by; absent: the caller named them. A partition that decides by
   * another one refuses, and whoever asks finds them again. It does not enter the log.
   */
  readonly matchedBy?: number | undefined;
  /**
   * Usage that is reported after the fact. The limit of `ruleId` records the cost whatever it has left, also if the key is blocked. What
   * exceeds the limit is debt: later requests are denied until it has left the window. Each of `further` says so for itself.
   */
  readonly settle?: true | undefined;
  /** It was matched with what is known of a customer: if that is another by now, it counts nowhere. */
  readonly guard?: CustomerGuard | undefined;
}

/** The fields by the names that callers know: every answer that names a field uses these. `rule` is `ruleId`. */
export const REQUEST_FIELDS = ['userId', 'timestampMillis', 'cost', 'rule', 'requestId'] as const;
export type RequestField = (typeof REQUEST_FIELDS)[number];

/**
 * The first field that is out of its bounds, whatever type it has; undefined if the request is well-formed. Doors and the
 * decoders of requests refuse what this refuses; behind them it is an invariant. Whether a timestamp is too far ahead
 * is for the leader to say: that needs a clock.
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
  if (!isBoundedInteger(askedDigest, 1, ASKED_DIGEST_MAX)) return noLimits('to come with what was asked');
  if (further.length >= LIMITS_PER_REQUEST_MAX) return noLimits(`at most ${LIMITS_PER_REQUEST_MAX}`);
  if (further.length > 0 && ruleId === undefined) return noLimits('named each');
  const seen = new Set([limitName({ userId, ruleId: ruleId ?? '' })]);
  for (const limit of further) {
    const wrong = invalidIn({ userId: limit.userId, ruleId: limit.ruleId, cost: limit.cost });
    if (wrong !== undefined) return wrong;
    const name = limitName(limit);
    if (seen.has(name)) return noLimits('different from each other');
    seen.add(name);
  }
  return undefined;
}

function limitName({ userId, ruleId }: FurtherLimit): string {
  return `${ruleId.length}:${ruleId}${userId}`;
}

function noLimits(bound: string): Invalid {
  return { kind: 'invalid', field: 'limits', message: `limits must be ${bound}` };
}

function noText(field: RequestField, maxBytes: number): Invalid {
  return { kind: 'invalid', field, message: `${field} must be text of 1 to ${maxBytes} bytes` };
}

function noInteger(field: RequestField, min: number, max: number): Invalid {
  return { kind: 'invalid', field, message: `${field} must be an integer from ${min} to ${max}` };
}
