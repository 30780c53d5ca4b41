/**
 * A batch of requests, as one log entry holds it: rows of bytes, one behind the other. A replica decides from these bytes;
 * it makes no string of a user or a request id. The builder writes them, the cursor walks along them; this file decides
 * nothing.
 *
 *   kind, count, number of rule ids, rule ids; then for each row: what it has (`HAS`), user id, and what it has in the order
 *   of `HAS`; or `HAS_OF_REFUND`, user id, request id; or `GUARDED`, a key, a version, then a row of a request. Integers are 7 bits a byte, lowest first; texts are UTF-8 behind their length.
 *
 * A request is a row; one under several limits has a row for each, and those behind the first say so (`HAS.further`).
 */

import type { CustomerGuard } from '../../api/customer.ts';
import type { AllowRequest, FurtherLimit } from '../../api/request.ts';
import type { BatchedRequest } from '../../api/user-request.ts';
import { DEFAULT_RULE } from '../rules.ts';

/** The most rows of one batch. */
export const BATCH_REQUESTS_MAX = 16_384;

/** What a request has that most have not, by bit. */
export const HAS = {
  rule: 1,
  cost: 2,
  timestamp: 4,
  requestId: 8,
  /** In joint batches only: */
  askedDigest: 32,
  /** The row is one more limit of the request before, and has at most a rule and a cost. */
  further: 64,
  /** Of a request with an id and a digest, whose further limits are not said. */
  ifRemembered: 128,
} as const;
export const HAS_MAX = 15;
/** What a refund has, in a batch of its own kind: its bit and a request id, and nothing else. */
export const HAS_OF_REFUND = 16 | HAS.requestId;

/**
 * Before what a request has: the key of a record, and the version that the record must have, or the request counts nowhere. In
 * guarded batches only.
 */
export const GUARDED = 17;

/** Sound bytes of a batch: `decodeCommand` has looked at all of them. */
export interface AllowBatch {
  /** Number of rows, 1 to `BATCH_REQUESTS_MAX`. */
  readonly size: number;
  /** Distinct rule ids, `DEFAULT_RULE` among them where a request named none. */
  readonly ruleIds: readonly string[];
  readonly bytes: Uint8Array;
  /** Where the first row begins. */
  readonly rowsAt: number;
}

const decoder = new TextDecoder('utf-8', { ignoreBOM: true });

/** Walks along the rows of a sound batch. One cursor is used for many batches. */
export class BatchCursor {
  bytes: Uint8Array = new Uint8Array(0);
  /** Place of the rule id in the batch's `ruleIds`. */
  ruleIndex = 0;
  cost = 1;
  timestampMillis: number | undefined;
  /** Where the user id begins and ends. */
  userIdFrom = 0;
  userIdTo = 0;
  /** Where the request id begins and ends. Both are 0 if there is none. */
  requestIdFrom = 0;
  requestIdTo = 0;
  isRefund = false;
  /** Of the first row of a request. */
  askedDigest: number | undefined;
  ifRemembered = false;
  /** Where the key of a guard begins and ends, and its version. Both places are 0 if there is none. */
  guardFrom = 0;
  guardTo = 0;
  guardVersion = 0;
  #at = 0;

  /** Stands before the first request. */
  open({ bytes, rowsAt }: AllowBatch): void {
    this.bytes = bytes;
    this.#at = rowsAt;
  }

  get hasRequestId(): boolean {
    return this.requestIdTo > 0;
  }

  /** The next row is one more limit of the request of this one. */
  get goesOn(): boolean {
    return this.#at < this.bytes.length && (this.bytes[this.#at]! & HAS.further) !== 0;
  }

  /** Goes on to the next row. There must be one. */
  next(): void {
    let has = this.bytes[this.#at]!;
    this.#at += 1;
    this.guardTo = 0;
    if (has === GUARDED) has = this.#guard();
    const userIdBytes = this.#integer();
    this.userIdFrom = this.#at;
    this.#at += userIdBytes;
    this.userIdTo = this.#at;
    this.ruleIndex = 0;
    this.cost = 1;
    this.timestampMillis = undefined;
    this.requestIdFrom = 0;
    this.requestIdTo = 0;
    this.isRefund = has === HAS_OF_REFUND;
    this.askedDigest = undefined;
    this.ifRemembered = (has & HAS.ifRemembered) !== 0;
    if (has === 0) return;
    if ((has & HAS.rule) !== 0) this.ruleIndex = this.#integer();
    if ((has & HAS.cost) !== 0) this.cost = this.#integer();
    if ((has & HAS.timestamp) !== 0) this.timestampMillis = this.#integer();
    if ((has & HAS.requestId) !== 0) {
      const requestIdBytes = this.#integer();
      this.requestIdFrom = this.#at;
      this.#at += requestIdBytes;
      this.requestIdTo = this.#at;
    }
    if ((has & HAS.askedDigest) !== 0) this.askedDigest = this.#integer();
  }

  /** Goes past a guard, and returns what the row has. */
  #guard(): number {
    const keyBytes = this.#integer();
    this.guardFrom = this.#at;
    this.#at += keyBytes;
    this.guardTo = this.#at;
    this.guardVersion = this.#integer();
    this.#at += 1;
    return this.bytes[this.#at - 1]!;
  }

  get hasGuard(): boolean {
    return this.guardTo > 0;
  }

  #integer(): number {
    let byte = this.bytes[this.#at]!;
    this.#at += 1;
    if (byte < 0x80) return byte;
    let value = byte & 0x7f;
    for (let scale = 128; ; scale *= 128) {
      byte = this.bytes[this.#at]!;
      this.#at += 1;
      value += (byte & 0x7f) * scale;
      if (byte < 0x80) return value;
    }
  }
}

/** The requests of a batch as they were added, but for what is said by saying nothing: a cost of 1 is not there. */
export function requestsOf(batch: AllowBatch): BatchedRequest[] {
  const cursor = new BatchCursor();
  const requests: BatchedRequest[] = [];
  cursor.open(batch);
  for (let rows = 0; rows < batch.size;) {
    cursor.next();
    const request = requestAt(batch, cursor);
    requests.push(request);
    rows += rowsOf(request);
  }
  return requests;
}

/** How many rows a request has in a batch. */
export function rowsOf(request: BatchedRequest): number {
  if (request.ask === 'refund' || request.further === undefined || request.ifRemembered === true) return 1;
  return 1 + request.further.length;
}

/** The request at whose first row the cursor stands; then it stands at its last one. */
export function requestAt({ bytes, ruleIds }: AllowBatch, cursor: BatchCursor): BatchedRequest {
  const { requestIdFrom, requestIdTo } = cursor;
  const userId = textOf(bytes, cursor.userIdFrom, cursor.userIdTo);
  if (cursor.isRefund) return { ask: 'refund', userId, requestId: textOf(bytes, requestIdFrom, requestIdTo) };
  const guard = cursor.hasGuard ? guardAt(cursor) : undefined;
  const request = requestAtRow(ruleIds, cursor, userId);
  return guard === undefined ? request : { ...request, guard };
}

function requestAtRow(ruleIds: readonly string[], cursor: BatchCursor, userId: string): AllowRequest {
  const { bytes, ruleIndex, cost, timestampMillis, requestIdFrom, requestIdTo, askedDigest } = cursor;
  const ruleId = ruleIds[ruleIndex];
  const request = {
    userId,
    ruleId: ruleId === DEFAULT_RULE ? undefined : ruleId,
    cost: cost === 1 ? undefined : cost,
    timestampMillis,
    requestId: cursor.hasRequestId ? textOf(bytes, requestIdFrom, requestIdTo) : undefined,
  };
  if (askedDigest === undefined) return request;
  if (cursor.ifRemembered) return { ...request, askedDigest, ifRemembered: true };
  return cursor.goesOn
    ? { ...request, askedDigest, further: furtherAt(ruleIds, cursor) }
    : { ...request, askedDigest };
}

/** Of the request at whose first row the cursor stands. There must be one. */
export function guardAt({ bytes, guardFrom, guardTo, guardVersion }: BatchCursor): CustomerGuard {
  return { userId: textOf(bytes, guardFrom, guardTo), version: guardVersion };
}

function furtherAt(ruleIds: readonly string[], cursor: BatchCursor): FurtherLimit[] {
  const further: FurtherLimit[] = [];
  while (cursor.goesOn) {
    cursor.next();
    const { bytes, userIdFrom, userIdTo, ruleIndex, cost } = cursor;
    const limit = { userId: textOf(bytes, userIdFrom, userIdTo), ruleId: ruleIds[ruleIndex]! };
    further.push(cost === 1 ? limit : { ...limit, cost });
  }
  return further;
}

/** Longer texts are decoded faster as a whole. */
const SHORT_TEXT_BYTES = 24;

function textOf(bytes: Uint8Array, from: number, to: number): string {
  if (to - from > SHORT_TEXT_BYTES) return decoder.decode(bytes.subarray(from, to));
  let text = '';
  for (let i = from; i < to; i += 1) {
    const byte = bytes[i]!;
    if (byte >= 0x80) return decoder.decode(bytes.subarray(from, to));
    text += String.fromCharCode(byte);
  }
  return text;
}
