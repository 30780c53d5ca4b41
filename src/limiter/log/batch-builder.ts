/** Collects requests into the bytes of one log entry, without an object per request. */

import {
  type AllowRequest,
  ASKED_DIGEST_MAX,
  COST_MAX,
  type FurtherLimit,
  KEY_BYTES_MAX,
  REQUEST_ID_BYTES_MAX,
  RULE_ID_BYTES_MAX,
  TIMESTAMP_MILLIS_MAX,
} from '../../api/request.ts';
import type { CustomerGuard } from '../../api/customer.ts';
import type { RefundRequest } from '../../api/refund.ts';
import type { BatchedRequest } from '../../api/user-request.ts';
import { isBoundedInteger, isBoundedText } from '../../api/bounded.ts';
import { assert } from '../assert.ts';
import { DEFAULT_RULE } from '../rules.ts';
import { BATCH_REQUESTS_MAX, GUARDED, HAS, HAS_OF_REFUND, rowsOf } from './batch.ts';
import { Bytes } from './bytes.ts';
import { kindOf } from './kinds.ts';

/** Of the kind, the count, and the number of rule ids. */
const HEAD_BYTES_MAX = 1 + 3 + 3;
/** Of the integers of a row, with the lengths of its texts. */
const INTEGERS_BYTES_MAX = 1 + 2 + 3 + 3 + 8 + 2 + 7;
const ROW_BYTES_MAX = INTEGERS_BYTES_MAX + KEY_BYTES_MAX + REQUEST_ID_BYTES_MAX;

/**
 * @example
 * const builder = new AllowBatchBuilder();
 * builder.add({ userId: 'ada' });
 * builder.add({ userId: 'bob', cost: 5 });
 * const data = builder.take();
 */
export class AllowBatchBuilder {
  readonly #rows = new Bytes();
  readonly #head = new Bytes();
  #size = 0;
  #hasRefunds = false;
  #hasJoint = false;
  #isGuarded = false;
  #ruleIds: string[] = [];
  readonly #ruleIndexOf = new Map<string, number>();

  /** Number of rows collected since the last `take`. */
  get size(): number {
    return this.#size;
  }

  /**
   * Appends a request, which somebody has found well-formed: what got into an entry can no longer be refused, only
   * decided. Its first row in the batch is the `i` that its decision will be reported with.
   */
  add(request: BatchedRequest): void {
    assert(this.#size + rowsOf(request) <= BATCH_REQUESTS_MAX, 'the batch is full');
    const rowsLength = this.#rows.length;
    const size = this.#size;
    try {
      if (request.ask === 'refund') this.#addRefund(request);
      else this.#addAllow(request);
    } catch (error) {
      // Nothing of it stays.
      this.#rows.length = rowsLength;
      this.#size = size;
      throw error;
    }
  }

  #addAllow(request: AllowRequest): void {
    const { guard, askedDigest } = request;
    if (guard !== undefined) this.#addGuard(guard);
    if (askedDigest === undefined) this.#addRow(request, 0);
    else this.#addJoint(request, askedDigest);
    if (guard !== undefined) this.#isGuarded = true;
  }

  #addGuard({ userId, version }: CustomerGuard): void {
    assert(userId !== '' && isBoundedInteger(version, 0, Number.MAX_SAFE_INTEGER), 'a guard has a key');
    const rows = this.#rows;
    rows.reserve(1 + 2 + KEY_BYTES_MAX + 8);
    rows.byte(GUARDED);
    rows.text(userId, KEY_BYTES_MAX);
    rows.integer(version);
  }

  #addRefund({ userId, requestId }: RefundRequest): void {
    assert(userId !== '' && requestId !== '', 'texts are not empty');
    const rows = this.#rows;
    rows.reserve(ROW_BYTES_MAX);
    rows.byte(HAS_OF_REFUND);
    rows.text(userId, KEY_BYTES_MAX);
    rows.text(requestId, REQUEST_ID_BYTES_MAX);
    this.#hasRefunds = true;
    this.#size += 1;
  }

  #addJoint(request: AllowRequest, askedDigest: number): void {
    assert(isBoundedInteger(askedDigest, 1, ASKED_DIGEST_MAX), 'what was asked is {}', askedDigest);
    const { ifRemembered = false, further = [] } = request;
    assert(!ifRemembered || request.requestId !== undefined, 'what is remembered has an id');
    this.#addRow(request, ifRemembered ? HAS.askedDigest | HAS.ifRemembered : HAS.askedDigest);
    this.#rows.integer(askedDigest);
    if (!ifRemembered) for (const limit of further) this.#addRow(limit, HAS.further);
    this.#hasJoint = true;
  }

  /** @param more of what the row has */
  #addRow(row: AllowRequest | FurtherLimit, more: number): void {
    const { userId, ruleId, cost = 1, timestampMillis, requestId } = row as AllowRequest;
    assert(userId !== '' && ruleId !== '' && requestId !== '', 'texts are not empty');
    assert(isBoundedInteger(cost, 1, COST_MAX), 'cost is {}', cost);
    assert(
      timestampMillis === undefined || isBoundedInteger(timestampMillis, 0, TIMESTAMP_MILLIS_MAX),
      'timestampMillis is {}',
      timestampMillis,
    );
    const ruleIndex = this.#indexOfRule(ruleId ?? DEFAULT_RULE);
    const rows = this.#rows;
    rows.reserve(ROW_BYTES_MAX);
    let has = more;
    if (ruleIndex > 0) has |= HAS.rule;
    if (cost !== 1) has |= HAS.cost;
    if (timestampMillis !== undefined) has |= HAS.timestamp;
    if (requestId !== undefined) has |= HAS.requestId;
    rows.byte(has);
    rows.text(userId, KEY_BYTES_MAX);
    if (ruleIndex > 0) rows.integer(ruleIndex);
    if (cost !== 1) rows.integer(cost);
    if (timestampMillis !== undefined) rows.integer(timestampMillis);
    if (requestId !== undefined) rows.text(requestId, REQUEST_ID_BYTES_MAX);
    this.#size += 1;
  }

  /** Forgets what was collected. */
  clear(): void {
    this.#rows.length = 0;
    this.#size = 0;
    this.#hasRefunds = false;
    this.#hasJoint = false;
    this.#isGuarded = false;
    this.#ruleIds = [];
    this.#ruleIndexOf.clear();
  }

  /** The entry; a new one begins. There must be at least one row. */
  take(): Uint8Array {
    assert(this.#size > 0, 'an empty batch makes no log entry');
    const head = this.#head;
    // What has no rule is said to have the first.
    if (this.#ruleIds.length === 0) this.#ruleIds.push(DEFAULT_RULE);
    head.length = 0;
    head.reserve(HEAD_BYTES_MAX + this.#ruleIds.length * (RULE_ID_BYTES_MAX + 2));
    head.byte(kindOf({ refunds: this.#hasRefunds, joint: this.#hasJoint, guarded: this.#isGuarded }));
    head.integer(this.#size);
    head.integer(this.#ruleIds.length);
    for (const ruleId of this.#ruleIds) head.text(ruleId, RULE_ID_BYTES_MAX);
    const data = new Uint8Array(head.length + this.#rows.length);
    data.set(head.written);
    data.set(this.#rows.written, head.length);
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
