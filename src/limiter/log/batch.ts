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
  readonly ruleIndexes?: readonly number[];
  /** Absent when every cost is 1. */
  readonly costs?: readonly number[];
  /** `null` where the caller gave none; absent when no caller did. */
  readonly timestampsMillis?: readonly (number | null)[];
  /** `null` where the caller gave none; absent when no caller did. */
  readonly requestIds?: readonly (string | null)[];
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
  #ruleIndexes: number[] | undefined;
  #costs: number[] | undefined;
  #timestampsMillis: (number | null)[] | undefined;
  #requestIds: (string | null)[] | undefined;

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
    const ruleIndex = this.#indexOfRule(request.ruleId ?? DEFAULT_RULE);
    if (ruleIndex !== 0) this.#ruleIndexes ??= filled(i, 0);
    this.#ruleIndexes?.push(ruleIndex);

    const cost = request.cost ?? 1;
    if (cost !== 1) this.#costs ??= filled(i, 1);
    this.#costs?.push(cost);

    const timestampMillis = request.timestampMillis ?? null;
    if (timestampMillis !== null) this.#timestampsMillis ??= filled(i, null);
    this.#timestampsMillis?.push(timestampMillis);

    const requestId = request.requestId ?? null;
    if (requestId !== null) this.#requestIds ??= filled(i, null);
    this.#requestIds?.push(requestId);

    this.#userIds.push(request.userId);
    return i;
  }

  /** Hands over the batch and starts an empty one. There must be at least one request. */
  take(): AllowBatch {
    assert(this.#userIds.length > 0, 'an empty batch makes no log entry');
    const batch: AllowBatch = {
      userIds: this.#userIds,
      ruleIds: this.#ruleIds,
      ...(this.#ruleIndexes && { ruleIndexes: this.#ruleIndexes }),
      ...(this.#costs && { costs: this.#costs }),
      ...(this.#timestampsMillis && { timestampsMillis: this.#timestampsMillis }),
      ...(this.#requestIds && { requestIds: this.#requestIds }),
    };
    this.#userIds = [];
    this.#ruleIds = [];
    this.#ruleIndexOf.clear();
    this.#ruleIndexes = undefined;
    this.#costs = undefined;
    this.#timestampsMillis = undefined;
    this.#requestIds = undefined;
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

function filled<T>(length: number, value: T): T[] {
  const column: T[] = [];
  for (let i = 0; i < length; i++) column.push(value);
  return column;
}
