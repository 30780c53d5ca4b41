/**
 * A batch of requests, as one log entry holds it, column by column. A replica decides from these bytes; it makes no string of a key or
 * a request id. The builder writes them, the cursor walks along them; this file decides nothing.
 *
 *   kind, which columns there are, number of rows, number of rule ids, rule ids; then each column that is there, with a value for each
 *   row. 0 says nothing, and a column in which no row says anything is not there.
 *   Integers are 7 bits a byte, lowest first; texts are UTF-8 behind their length.
 *
 * A request is a row; one under several limits has a row for each, the first of which says how many follow.
 */

import type { CustomerGuard } from '../../api/customer-record.ts';
import type { AllowRequest, FurtherLimit } from '../../api/request.ts';
import type { BatchedRequest } from '../../api/user-request.ts';
import { DEFAULT_RULE } from '../rules.ts';

/** The most rows of one batch. */
export const BATCH_REQUESTS_MAX = 16_384;

/** The columns, in the order in which they stand. The bit of one says that it is there. */
export const COLUMN = {
  /** Each row has one. */
  key: 0,
  /** Place of the rule id among those of the batch. */
  rule: 1,
  /** Less 1. */
  cost: 2,
  /** Plus 1. */
  timestamp: 3,
  requestId: 4,
  /** 1: the row is a refund, and has a key and a request id only. */
  refund: 5,
  askedDigest: 6,
  /** How many of the next rows are further limits of this request: they have a key, a rule, a cost and `settle` only. */
  further: 7,
  /** 1: it has an id and a digest, and its further limits are not said. */
  ifRemembered: 8,
  /** The key of a record, and behind it the version that the record must have, or the request counts nowhere. */
  guard: 9,
  /** 1: the cost is settled: the limit of this row does not deny it. */
  settle: 10,
  attempt: 11,
} as const;
export const COLUMNS = 12;
export const KEYS_ALONE = 1 << COLUMN.key;
/** What a row may have that is a request of one limit, and bound to no record. */
export const COLUMNS_OF_ONE =
  KEYS_ALONE | (1 << COLUMN.rule) | (1 << COLUMN.cost) | (1 << COLUMN.timestamp) | (1 << COLUMN.requestId);

/** Sound bytes of a batch: `decodeCommand` has looked at all of them. */
export interface AllowBatch {
  /** Number of rows, 1 to `BATCH_REQUESTS_MAX`. */
  readonly size: number;
  /** Distinct rule ids, `DEFAULT_RULE` among them where a request named none. */
  readonly ruleIds: readonly string[];
  readonly bytes: Uint8Array;
  /** Those that are there, by bit. */
  readonly columns: number;
  /** Where each column begins that is there. */
  readonly starts: readonly number[];
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
  /** How many more limits of the request of this row follow. */
  further = 0;
  ifRemembered = false;
  isSettled = false;
  attempt: number | undefined;
  /** Where the key of a guard begins and ends, and its version. Both places are 0 if there is none. */
  guardFrom = 0;
  guardTo = 0;
  guardVersion = 0;
  #columns = 0;
  /** In each column, where the next row is. */
  readonly #at: number[] = Array.from({ length: COLUMNS }, () => 0);

  /** Stands before the first request. */
  open({ bytes, columns, starts }: AllowBatch): void {
    this.bytes = bytes;
    this.#columns = columns;
    for (let i = 0; i < starts.length; i += 1) this.#at[i] = starts[i]!;
    this.ruleIndex = 0;
    this.cost = 1;
    this.timestampMillis = undefined;
    this.requestIdFrom = 0;
    this.requestIdTo = 0;
    this.isRefund = false;
    this.askedDigest = undefined;
    this.further = 0;
    this.ifRemembered = false;
    this.isSettled = false;
    this.attempt = undefined;
    this.guardFrom = 0;
    this.guardTo = 0;
  }

  get hasRequestId(): boolean {
    return this.requestIdTo > 0;
  }

  /** Goes on to the next row. There must be one. */
  next(): void {
    const at = this.#at;
    const keyBytes = this.#integer(COLUMN.key);
    this.userIdFrom = at[COLUMN.key]!;
    this.userIdTo = this.userIdFrom + keyBytes;
    at[COLUMN.key] = this.userIdTo;
    const columns = this.#columns;
    if (columns === KEYS_ALONE) return;
    if ((columns & (1 << COLUMN.rule)) !== 0) this.ruleIndex = this.#integer(COLUMN.rule);
    if ((columns & (1 << COLUMN.cost)) !== 0) this.cost = 1 + this.#integer(COLUMN.cost);
    if ((columns & (1 << COLUMN.timestamp)) !== 0) {
      const timestamp = this.#integer(COLUMN.timestamp);
      this.timestampMillis = timestamp === 0 ? undefined : timestamp - 1;
    }
    if ((columns & (1 << COLUMN.requestId)) !== 0) {
      const idBytes = this.#integer(COLUMN.requestId);
      this.requestIdFrom = idBytes === 0 ? 0 : at[COLUMN.requestId]!;
      this.requestIdTo = this.requestIdFrom + idBytes;
      at[COLUMN.requestId]! += idBytes;
    }
    if ((columns & ~COLUMNS_OF_ONE) !== 0) this.#nextRare(columns);
  }

  #nextRare(columns: number): void {
    if ((columns & (1 << COLUMN.refund)) !== 0) this.isRefund = this.#integer(COLUMN.refund) === 1;
    if ((columns & (1 << COLUMN.askedDigest)) !== 0)
      this.askedDigest = this.#integer(COLUMN.askedDigest) || undefined;
    if ((columns & (1 << COLUMN.further)) !== 0) {
      const further = this.#integer(COLUMN.further);
      this.further = this.further > 0 ? this.further - 1 : further;
    }
    if ((columns & (1 << COLUMN.ifRemembered)) !== 0)
      this.ifRemembered = this.#integer(COLUMN.ifRemembered) === 1;
    if ((columns & (1 << COLUMN.guard)) !== 0) this.#nextGuard();
    if ((columns & (1 << COLUMN.settle)) !== 0) this.isSettled = this.#integer(COLUMN.settle) === 1;
    if ((columns & (1 << COLUMN.attempt)) !== 0) this.attempt = this.#integer(COLUMN.attempt) || undefined;
  }

  #nextGuard(): void {
    const keyBytes = this.#integer(COLUMN.guard);
    this.guardFrom = 0;
    this.guardTo = 0;
    if (keyBytes === 0) return;
    this.guardFrom = this.#at[COLUMN.guard]!;
    this.guardTo = this.guardFrom + keyBytes;
    this.#at[COLUMN.guard] = this.guardTo;
    this.guardVersion = this.#integer(COLUMN.guard);
  }

  get hasGuard(): boolean {
    return this.guardTo > 0;
  }

  #integer(column: number): number {
    const at = this.#at[column]!;
    const byte = this.bytes[at]!;
    if (byte >= 0x80) return this.#longInteger(column, byte & 0x7f);
    this.#at[column] = at + 1;
    return byte;
  }

  #longInteger(column: number, low: number): number {
    let at = this.#at[column]! + 1;
    let value = low;
    for (let scale = 128; ; scale *= 128) {
      const byte = this.bytes[at]!;
      at += 1;
      value += (byte & 0x7f) * scale;
      if (byte >= 0x80) continue;
      this.#at[column] = at;
      return value;
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
  const { isSettled, attempt } = cursor;
  const request = requestAtRow(ruleIds, cursor, userId, isSettled || undefined);
  if (guard === undefined && attempt === undefined) return request;
  return {
    ...request,
    ...(guard !== undefined && { guard }),
    ...(attempt !== undefined && { attempt }),
  };
}

function requestAtRow(
  ruleIds: readonly string[],
  cursor: BatchCursor,
  userId: string,
  settle: true | undefined,
): AllowRequest {
  const { bytes, ruleIndex, cost, timestampMillis, requestIdFrom, requestIdTo, askedDigest } = cursor;
  const ruleId = ruleIds[ruleIndex];
  // The same fields in the same order as in `requestFor`, so that the engine gives both kinds of requests one shape.
  const request = {
    userId,
    ruleId: ruleId === DEFAULT_RULE ? undefined : ruleId,
    cost: cost === 1 ? undefined : cost,
    timestampMillis,
    requestId: cursor.hasRequestId ? textOf(bytes, requestIdFrom, requestIdTo) : undefined,
    matchedBy: undefined,
    settle,
  };
  if (askedDigest === undefined) return request;
  if (cursor.ifRemembered) return { ...request, askedDigest, ifRemembered: true };
  return cursor.further > 0
    ? { ...request, askedDigest, further: furtherAt(ruleIds, cursor) }
    : { ...request, askedDigest };
}

/** Of the request at whose first row the cursor stands. There must be one. */
export function guardAt({ bytes, guardFrom, guardTo, guardVersion }: BatchCursor): CustomerGuard {
  return { userId: textOf(bytes, guardFrom, guardTo), version: guardVersion };
}

function furtherAt(ruleIds: readonly string[], cursor: BatchCursor): FurtherLimit[] {
  const further: FurtherLimit[] = [];
  while (cursor.further > 0) {
    cursor.next();
    const { bytes, userIdFrom, userIdTo, ruleIndex, cost, isSettled } = cursor;
    const limit = { userId: textOf(bytes, userIdFrom, userIdTo), ruleId: ruleIds[ruleIndex]! };
    further.push({ ...limit, ...(cost !== 1 && { cost }), ...(isSettled && { settle: true }) });
  }
  return further;
}

/** Longer texts are decoded faster as a whole. */
const SHORT_TEXT_BYTES = 24;

function textOf(bytes: Uint8Array, from: number, to: number): string {
  if (to - from > SHORT_TEXT_BYTES) return decoder.decode(bytes.subarray(from, to));
  let highest = 0;
  for (let i = from; i < to; i += 1) highest |= bytes[i]!;
  if (highest >= 0x80) return decoder.decode(bytes.subarray(from, to));
  // Four letters at a time, as every concatenation makes a new string.
  const { fromCharCode } = String;
  let text = '';
  let i = from;
  for (; i + 4 <= to; i += 4) text += fromCharCode(bytes[i]!, bytes[i + 1]!, bytes[i + 2]!, bytes[i + 3]!);
  for (; i < to; i += 1) text += fromCharCode(bytes[i]!);
  return text;
}
