/**
 * The column format of a batch of requests in a log entry. A replica decides directly from these bytes, without
 * creating strings of keys or request ids. `batch-builder.ts` writes them, `batch-reader.ts` checks them, `BatchCursor`
 * walks along the rows.
 *
 * - Layout: kind, bits of the columns present, number of rows, number of rule ids, rule ids; then each column that is
 *   present, with one value per row. 0 means no value; a column without any value is absent.
 * - Integers have 7 bits per byte, lowest bits first (LEB128). A text is its length and its UTF-8 bytes.
 * - A request is one row. A request under several limits has a row per limit; the first row says how many follow.
 */

import type { CustomerGuard } from '../../api/customer-record.ts';
import type { AllowRequest, FurtherLimit } from '../../api/request.ts';
import type { BatchedRequest } from '../../api/user-request.ts';
import { DEFAULT_RULE } from '../rules.ts';

/** The maximum number of rows in a batch. */
export const BATCH_REQUESTS_MAX = 16_384;

/** The columns, in the order in which they are written. The number is also the bit that marks the column as present. */
export const COLUMN = {
  /** Present in every row. */
  key: 0,
  /** Index in the rule ids of the batch. */
  rule: 1,
  /** Stored as cost - 1. */
  cost: 2,
  /** Stored as timestamp + 1. */
  timestamp: 3,
  requestId: 4,
  /** 1: the row is a refund and has only a key and a request id. */
  refund: 5,
  askedDigest: 6,
  /**
   * How many of the next rows are further limits of this request. Those rows have only a key, a rule, a cost and
   * `settle`.
   */
  further: 7,
  /** 1: grant only what this request id was granted before. The row has an id and a digest but no further limits. */
  ifRemembered: 8,
  /** The key of a customer record and the version it must have; otherwise the request is refused. */
  guard: 9,
  /** 1: the cost is settled, so the limit of this row does not deny it. */
  settle: 10,
  attempt: 11,
} as const;
/** The number of columns. */
export const COLUMNS = 12;
/** The bits of a batch of plain requests: the key column only. */
export const KEYS_ALONE = 1 << COLUMN.key;
/** The columns that a request with a single limit and no guard can have. */
export const COLUMNS_OF_ONE =
  KEYS_ALONE | (1 << COLUMN.rule) | (1 << COLUMN.cost) | (1 << COLUMN.timestamp) | (1 << COLUMN.requestId);

/** A valid batch: `decodeCommand` has checked all of its bytes. */
export interface AllowBatch {
  /** Number of rows, 1 to `BATCH_REQUESTS_MAX`. */
  readonly size: number;
  /** Distinct rule ids. Contains `DEFAULT_RULE` if a request named no rule. */
  readonly ruleIds: readonly string[];
  readonly bytes: Uint8Array;
  /** The columns present, one bit each. */
  readonly columns: number;
  /** The byte at which each present column begins; 0 for absent ones. */
  readonly starts: readonly number[];
}

const decoder = new TextDecoder('utf-8', { ignoreBOM: true });

/** Walks along the rows of a valid batch. One cursor is reused for many batches. */
export class BatchCursor {
  bytes: Uint8Array = new Uint8Array(0);
  /** Index of the rule id in the batch's `ruleIds`. */
  ruleIndex = 0;
  cost = 1;
  timestampMillis: number | undefined;
  /** The byte range of the user id. */
  userIdFrom = 0;
  userIdTo = 0;
  /** The byte range of the request id; 0 to 0 if there is none. */
  requestIdFrom = 0;
  requestIdTo = 0;
  isRefund = false;
  /** Set in the first row of a request. */
  askedDigest: number | undefined;
  /** How many further rows belong to the same request. */
  further = 0;
  ifRemembered = false;
  isSettled = false;
  attempt: number | undefined;
  /** The byte range of the guard's key (0 to 0 if there is no guard) and the guard's version. */
  guardFrom = 0;
  guardTo = 0;
  guardVersion = 0;
  #columns = 0;
  /** The position of the next row in each column. */
  readonly #at: number[] = Array.from({ length: COLUMNS }, () => 0);

  /** Goes before the first row. */
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

  /** Goes to the next row. There must be one. */
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

/** The requests of a batch as they were added, except that default values such as a cost of 1 are absent. */
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

/** Reads the request whose first row the cursor is at. Afterwards the cursor is at its last row. */
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
  // The same fields in the same order as in `requestFor`, so that V8 gives all requests one hidden class.
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

/** The guard of the request whose first row the cursor is at. There must be one. */
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

/** For longer texts `TextDecoder` is faster. */
const SHORT_TEXT_BYTES = 24;

function textOf(bytes: Uint8Array, from: number, to: number): string {
  if (to - from > SHORT_TEXT_BYTES) return decoder.decode(bytes.subarray(from, to));
  let highest = 0;
  for (let i = from; i < to; i += 1) highest |= bytes[i]!;
  if (highest >= 0x80) return decoder.decode(bytes.subarray(from, to));
  // Four characters at a time, because each concatenation creates a new string.
  const { fromCharCode } = String;
  let text = '';
  let i = from;
  for (; i + 4 <= to; i += 4) text += fromCharCode(bytes[i]!, bytes[i + 1]!, bytes[i + 2]!, bytes[i + 3]!);
  for (; i < to; i += 1) text += fromCharCode(bytes[i]!);
  return text;
}
