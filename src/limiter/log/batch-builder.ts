/** Collects requests into the bytes of one log entry, without allocating an object per request. */

import {
  type AllowRequest,
  ASKED_DIGEST_MAX,
  ATTEMPT_MAX,
  COST_MAX,
  type FurtherLimit,
  KEY_BYTES_MAX,
  REQUEST_ID_BYTES_MAX,
  RULE_ID_BYTES_MAX,
  TIMESTAMP_MILLIS_MAX,
} from '../../api/request.ts';
import type { CustomerGuard } from '../../api/customer-record.ts';
import type { RefundRequest } from '../../api/refund.ts';
import type { BatchedRequest } from '../../api/user-request.ts';
import { isBoundedInteger, isBoundedText } from '../../api/bounded.ts';
import { ByteWriter } from '../../bytes/byte-writer.ts';
import { assert } from '../assert.ts';
import { DEFAULT_RULE } from '../rules.ts';
import { BATCH_REQUESTS_MAX, COLUMN, COLUMNS, rowsOf } from './batch.ts';
import { KIND_BATCH } from './kinds.ts';

/**
 * Builds one batch after the other.
 *
 * @example
 * const builder = new AllowBatchBuilder();
 * builder.add({ userId: 'ada' });
 * builder.add({ userId: 'bob', cost: 5 });
 * const data = builder.take();
 */
export class AllowBatchBuilder {
  readonly #head = new ByteWriter();
  readonly #columns = Array.from({ length: COLUMNS }, () => new BatchColumn());
  /** The columns in use, one bit each. The others are empty. */
  #there = 0;
  #size = 0;
  #ruleIds: string[] = [];
  readonly #ruleIndexOf = new Map<string, number>();

  /** Number of rows collected since the last `take`. */
  get size(): number {
    return this.#size;
  }

  /**
   * Appends a request that has been validated: what is in an entry can no longer be refused, only decided. The decision
   * will be reported with the request's first row in the batch.
   *
   * @throws LimiterAssertionError if the batch is full or the request is invalid; the batch is then unchanged
   */
  add(request: BatchedRequest): void {
    assert(this.#size + rowsOf(request) <= BATCH_REQUESTS_MAX, 'the batch is full');
    const size = this.#size;
    const there = this.#there;
    this.#mark();
    try {
      if (request.ask === 'refund') this.#addRefund(request);
      else this.#addAllow(request);
    } catch (error) {
      // Undo everything this request wrote.
      for (let i = 0; i < COLUMNS; i += 1) {
        if ((there & (1 << i)) === 0) this.#columns[i]!.clear();
        else this.#columns[i]!.reset();
      }
      this.#there = there;
      this.#size = size;
      throw error;
    }
  }

  #mark(): void {
    for (let i = 0; this.#there >> i !== 0; i += 1)
      if ((this.#there & (1 << i)) !== 0) this.#columns[i]!.mark();
  }

  #addRefund({ userId, requestId }: RefundRequest): void {
    const row = this.#addKey(userId);
    this.#addRequestId(row, requestId);
    this.#at(COLUMN.refund, row).flag(true);
  }

  #addAllow(request: AllowRequest): void {
    const { requestId, timestampMillis, askedDigest, guard } = request;
    const row = this.#addLimit(request);
    if (timestampMillis !== undefined) {
      const isSound = isBoundedInteger(timestampMillis, 0, TIMESTAMP_MILLIS_MAX);
      assert(isSound, 'timestampMillis is {}', timestampMillis);
      this.#at(COLUMN.timestamp, row).integer(timestampMillis + 1);
    }
    if (requestId !== undefined) this.#addRequestId(row, requestId);
    if (guard !== undefined) this.#addGuard(row, guard);
    if (askedDigest !== undefined) this.#addMatched(row, request, askedDigest);
  }

  #addMatched(row: number, request: AllowRequest, askedDigest: number): void {
    assert(isBoundedInteger(askedDigest, 1, ASKED_DIGEST_MAX), 'askedDigest is {}', askedDigest);
    const { ifRemembered = false, further = [], attempt } = request;
    const isIdNeeded = ifRemembered || attempt !== undefined;
    assert(!isIdNeeded || request.requestId !== undefined, 'ifRemembered and attempt need a request id');
    this.#at(COLUMN.askedDigest, row).integer(askedDigest);
    if (ifRemembered) {
      this.#at(COLUMN.ifRemembered, row).flag(true);
      return;
    }
    if (attempt !== undefined) {
      assert(isBoundedInteger(attempt, 1, ATTEMPT_MAX), 'the attempt is {}', attempt);
      this.#at(COLUMN.attempt, row).integer(attempt);
    }
    if (further.length === 0) return;
    this.#at(COLUMN.further, row).integer(further.length);
    for (const limit of further) this.#addLimit(limit);
  }

  /** Returns the new row. */
  #addLimit({ userId, ruleId, cost = 1, settle }: AllowRequest | FurtherLimit): number {
    assert(ruleId !== '', 'texts are not empty');
    assert(isBoundedInteger(cost, 1, COST_MAX), 'cost is {}', cost);
    const ruleIndex = this.#indexOfRule(ruleId ?? DEFAULT_RULE);
    const row = this.#addKey(userId);
    if (ruleIndex > 0) this.#at(COLUMN.rule, row).integer(ruleIndex);
    if (cost !== 1) this.#at(COLUMN.cost, row).integer(cost - 1);
    if (settle === true) this.#at(COLUMN.settle, row).flag(true);
    return row;
  }

  #addKey(key: string): number {
    assert(key !== '', 'texts are not empty');
    const row = this.#size;
    this.#at(COLUMN.key, row).text(key, KEY_BYTES_MAX);
    this.#size += 1;
    return row;
  }

  #addRequestId(row: number, requestId: string): void {
    assert(requestId !== '', 'texts are not empty');
    this.#at(COLUMN.requestId, row).text(requestId, REQUEST_ID_BYTES_MAX);
  }

  #addGuard(row: number, { userId, version }: CustomerGuard): void {
    assert(userId !== '' && isBoundedInteger(version, 0, Number.MAX_SAFE_INTEGER), 'a guard has a key');
    const out = this.#at(COLUMN.guard, row);
    out.text(userId, KEY_BYTES_MAX);
    out.integer(version);
  }

  /** Where to write the value of `row` in a column. */
  #at(column: number, row: number): ByteWriter {
    this.#there |= 1 << column;
    return this.#columns[column]!.at(row);
  }

  /** Drops what was collected. */
  clear(): void {
    for (let i = 0; this.#there >> i !== 0; i += 1) this.#columns[i]!.clear();
    this.#there = 0;
    this.#size = 0;
    this.#ruleIds = [];
    this.#ruleIndexOf.clear();
  }

  /** Returns the entry and starts a new one. There must be at least one row. */
  take(): Uint8Array {
    assert(this.#size > 0, 'an empty batch makes no log entry');
    // Only refunds, which name no rule: each row needs a rule index, so there is one rule id.
    if (this.#ruleIds.length === 0) this.#ruleIds.push(DEFAULT_RULE);
    const head = this.#head;
    head.clear();
    head.byte(KIND_BATCH);
    head.integer(this.#there);
    head.integer(this.#size);
    head.integer(this.#ruleIds.length);
    for (const ruleId of this.#ruleIds) head.text(ruleId, RULE_ID_BYTES_MAX);
    let { length } = head;
    for (let i = 0; this.#there >> i !== 0; i += 1) length += this.#columns[i]!.filled(this.#size);
    const data = new Uint8Array(length);
    let at = head.copyTo(data, 0);
    for (let i = 0; this.#there >> i !== 0; i += 1) at = this.#columns[i]!.copyTo(data, at);
    this.clear();
    return data;
  }

  #indexOfRule(ruleId: string): number {
    if (this.#ruleIds[0] === ruleId) return 0;
    let index = this.#ruleIndexOf.get(ruleId);
    if (index === undefined) {
      assert(ruleId === DEFAULT_RULE || isBoundedText(ruleId, RULE_ID_BYTES_MAX), 'a rule id is well-formed');
      index = this.#ruleIds.length;
      this.#ruleIds.push(ruleId);
      this.#ruleIndexOf.set(ruleId, index);
    }
    return index;
  }
}

/**
 * One column of a batch while it is being written: one value per row, 0 for rows without a value. Rows are written
 * in order. A row without a value takes one byte as soon as a later row has one.
 */
class BatchColumn {
  readonly #out = new ByteWriter();
  #rows = 0;
  #markedRows = 0;
  #markedLength = 0;

  /** Where to write the value of `row`, which must be greater than all rows before. */
  at(row: number): ByteWriter {
    for (; this.#rows < row; this.#rows += 1) this.#out.byte(0);
    this.#rows = row + 1;
    return this.#out;
  }

  /** Pads the column to `rows` rows and returns its length in bytes; 0 if no row has a value. */
  filled(rows: number): number {
    if (this.#rows > 0) for (; this.#rows < rows; this.#rows += 1) this.#out.byte(0);
    return this.#out.length;
  }

  /** Copies the column to `target` and returns the index after its last byte. */
  copyTo(target: Uint8Array, at: number): number {
    return this.#out.copyTo(target, at);
  }

  /** Remembers the present length, to which `reset` goes back. */
  mark(): void {
    this.#markedRows = this.#rows;
    this.#markedLength = this.#out.length;
  }

  reset(): void {
    this.#rows = this.#markedRows;
    this.#out.truncate(this.#markedLength);
  }

  clear(): void {
    this.#rows = 0;
    this.#out.clear();
  }
}
