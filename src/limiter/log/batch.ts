/**
 * A batch of requests, column by column, and the builder that fills one. One batch becomes one log entry.
 * Columns that would carry nothing are left out; this file neither encodes nor decides.
 */

import { type AllowRequest, invalidIn } from '../../api/request.ts';
import { assert } from '../assert.ts';
import { DEFAULT_RULE } from '../rules.ts';

/** The most requests of one batch. */
export const BATCH_REQUESTS_MAX = 16_384;

/** Every column that is present has one element per request. */
export interface AllowBatch {
  readonly userIds: readonly string[];
  /** Distinct rule ids, `DEFAULT_RULE` among them where a request named none. */
  readonly ruleIds: readonly string[];
  /** Per request an index into `ruleIds`; absent when all use `ruleIds[0]`. */
  readonly ruleIndexes?: readonly number[] | undefined;
  /** Absent when every cost is 1. */
  readonly costs?: readonly number[] | undefined;
  /** `null` where the caller gave none; absent when no caller did. */
  readonly timestampsMillis?: readonly (number | null)[] | undefined;
  /** `null` where the caller gave none; absent when no caller did. */
  readonly requestIds?: readonly (string | null)[] | undefined;
}

/** A column that is absent as long as all its values are the usual one. */
class SparseColumn<T> {
  readonly #usual: T;
  #values: T[] | undefined;

  constructor(usual: T) {
    this.#usual = usual;
  }

  /** Appends the value of request `i`. */
  push(i: number, value: T): void {
    if (value !== this.#usual) this.#values ??= Array.from({ length: i }, () => this.#usual);
    this.#values?.push(value);
  }

  /** Hands over the column and starts an empty one. */
  take(): readonly T[] | undefined {
    const values = this.#values;
    this.#values = undefined;
    return values;
  }
}

/**
 * Collects requests into columns without an object per request.
 *
 * @example
 * const builder = new AllowBatchBuilder();
 * builder.add({ userId: 'ada' });
 * builder.add({ userId: 'bob', cost: 5 });
 * const data = encodeCommand({ type: 'allow', batch: builder.take() });
 */
export class AllowBatchBuilder {
  #userIds: string[] = [];
  #ruleIds: string[] = [];
  #ruleIndexOf = new Map<string, number>();
  readonly #ruleIndexes = new SparseColumn(0);
  readonly #costs = new SparseColumn(1);
  readonly #timestampsMillis = new SparseColumn<number | null>(null);
  readonly #requestIds = new SparseColumn<string | null>(null);

  /** Number of requests collected since the last `take`. */
  get size(): number {
    return this.#userIds.length;
  }

  get isFull(): boolean {
    return this.#userIds.length >= BATCH_REQUESTS_MAX;
  }

  /**
   * Appends a request, which somebody has found well-formed, and returns its position in the batch: the `i` its decision
   * will be reported with. What got into an entry can no longer be refused, only decided.
   */
  add(request: AllowRequest): number {
    assert(!this.isFull, 'the batch is full');
    assert(invalidIn(request) === undefined, 'only well-formed requests enter the log');
    const i = this.#userIds.length;
    this.#ruleIndexes.push(i, this.#indexOfRule(request.ruleId ?? DEFAULT_RULE));
    this.#costs.push(i, request.cost ?? 1);
    this.#timestampsMillis.push(i, request.timestampMillis ?? null);
    this.#requestIds.push(i, request.requestId ?? null);
    this.#userIds.push(request.userId);
    return i;
  }

  /** Hands over the batch and starts an empty one. There must be at least one request. */
  take(): AllowBatch {
    assert(this.#userIds.length > 0, 'an empty batch makes no log entry');
    const batch: AllowBatch = {
      userIds: this.#userIds,
      ruleIds: this.#ruleIds,
      ruleIndexes: this.#ruleIndexes.take(),
      costs: this.#costs.take(),
      timestampsMillis: this.#timestampsMillis.take(),
      requestIds: this.#requestIds.take(),
    };
    this.#userIds = [];
    this.#ruleIds = [];
    this.#ruleIndexOf.clear();
    return batch;
  }

  #indexOfRule(ruleId: string): number {
    if (this.#ruleIds[0] === ruleId) return 0;
    let index = this.#ruleIndexOf.get(ruleId);
    if (index === undefined) {
      index = this.#ruleIds.length;
      this.#ruleIds.push(ruleId);
      this.#ruleIndexOf.set(ruleId, index);
    }
    return index;
  }
}

/** The request at position `i` as it was added, but for what is said by saying nothing: a cost of 1 may stand there. */
export function requestAt(batch: AllowBatch, i: number): AllowRequest {
  const { userIds, ruleIds, ruleIndexes, costs, timestampsMillis, requestIds } = batch;
  const userId = userIds[i];
  assert(userId !== undefined, 'the batch has fewer requests');
  const ruleId = ruleIds[ruleIndexes?.[i] ?? 0];
  return {
    userId,
    ruleId: ruleId === DEFAULT_RULE ? undefined : ruleId,
    cost: costs?.[i],
    timestampMillis: timestampsMillis?.[i] ?? undefined,
    requestId: requestIds?.[i] ?? undefined,
  };
}
