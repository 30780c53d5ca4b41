/**
 * Remembers the answers of grants by request id, so that a retry gets the same answer and charges nothing.
 * It holds columns instead of objects: at a high rate most of a replica's memory is here. It grants nothing.
 */

import { assert } from './assert.ts';
import type { Decision } from './decision.ts';

/** A grant's whole answer, and the last millisecond of group time at which it may be given again. */
export interface RememberedGrant {
  readonly key: string;
  readonly expiresMillis: number;
  readonly term: number;
  readonly index: number;
  readonly timeMillis: number;
  readonly limit: number;
  readonly remaining: number;
  readonly retryAfterMillis: number;
  readonly resetMillis: number;
  readonly windowMillis: number;
}

const COLUMNS = 9;
const CAPACITY_MIN = 64;

/** The key of one request id of one user under one rule. Lengths in front keep different triples apart. */
export function memoryKey(ruleId: string, userId: string, requestId: string): string {
  return `${ruleId.length}:${userId.length}:${ruleId}${userId}${requestId}`;
}

export class RequestMemory {
  /** Maps a key to the sequence number of its newest grant. */
  readonly #sequenceOf = new Map<string, number>();
  /** A ring in grant order; sequence `s` sits at `s mod capacity`. The capacity is a power of two. */
  #keys: string[] = [];
  #columns = new Float64Array(0);
  #capacity = 0;
  /** Sequence numbers held: from `#first` up to but excluding `#next`. */
  #first = 0;
  #next = 0;

  /** Number of grants held, the few included that expired but were not swept yet. */
  get size(): number {
    return this.#next - this.#first;
  }

  /** The place of an unexpired grant, for `decisionAt`, or -1. A place is valid until the next `remember` or `expire`. */
  find(key: string, nowMillis: number): number {
    const sequence = this.#sequenceOf.get(key);
    if (sequence === undefined) return -1;
    const slot = sequence & (this.#capacity - 1);
    // Expired but not swept must look the same as swept: replicas restored from a snapshot never had it.
    return this.#value(slot, 0) >= nowMillis ? slot : -1;
  }

  decisionAt(slot: number, ruleId: string): Decision {
    return {
      allowed: true,
      ruleId,
      limit: this.#value(slot, 4),
      remaining: this.#value(slot, 5),
      retryAfterMillis: this.#value(slot, 6),
      resetMillis: this.#value(slot, 7),
      windowMillis: this.#value(slot, 8),
      decided: {
        term: this.#value(slot, 1),
        index: this.#value(slot, 2),
        timeMillis: this.#value(slot, 3),
      },
    };
  }

  /** Remembers the grant of a key that `find` does not find. */
  remember(
    key: string,
    expiresMillis: number,
    term: number,
    index: number,
    timeMillis: number,
    limit: number,
    remaining: number,
    retryAfterMillis: number,
    resetMillis: number,
    windowMillis: number,
  ): void {
    if (this.size === this.#capacity) this.#resize(Math.max(CAPACITY_MIN, this.#capacity * 2));
    const slot = this.#next & (this.#capacity - 1);
    const at = slot * COLUMNS;
    this.#columns[at] = expiresMillis;
    this.#columns[at + 1] = term;
    this.#columns[at + 2] = index;
    this.#columns[at + 3] = timeMillis;
    this.#columns[at + 4] = limit;
    this.#columns[at + 5] = remaining;
    this.#columns[at + 6] = retryAfterMillis;
    this.#columns[at + 7] = resetMillis;
    this.#columns[at + 8] = windowMillis;
    this.#keys[slot] = key;
    this.#sequenceOf.set(key, this.#next);
    this.#next++;
  }

  /**
   * Drops at most `count` of the oldest grants if they have expired at `nowMillis`. After a shortened horizon
   * a grant with a shorter life can wait behind one with a longer; `find` does not show it meanwhile.
   */
  expire(nowMillis: number, count: number): void {
    for (let i = 0; i < count && this.#first < this.#next; i++) {
      const slot = this.#first & (this.#capacity - 1);
      if (this.#value(slot, 0) >= nowMillis) return;
      const key = this.#keys[slot]!;
      // The key may have been granted again since; that grant is further back in the ring.
      if (this.#sequenceOf.get(key) === this.#first) this.#sequenceOf.delete(key);
      this.#keys[slot] = '';
      this.#first++;
    }
    if (this.#capacity > CAPACITY_MIN && this.size < this.#capacity >>> 2) this.#resize(this.#capacity >>> 1);
  }

  /** All grants unexpired at `nowMillis`, oldest first. */
  *unexpired(nowMillis: number): Generator<RememberedGrant> {
    for (let sequence = this.#first; sequence < this.#next; sequence++) {
      const slot = sequence & (this.#capacity - 1);
      if (this.#value(slot, 0) < nowMillis) continue;
      yield {
        key: this.#keys[slot]!,
        expiresMillis: this.#value(slot, 0),
        term: this.#value(slot, 1),
        index: this.#value(slot, 2),
        timeMillis: this.#value(slot, 3),
        limit: this.#value(slot, 4),
        remaining: this.#value(slot, 5),
        retryAfterMillis: this.#value(slot, 6),
        resetMillis: this.#value(slot, 7),
        windowMillis: this.#value(slot, 8),
      };
    }
  }

  #value(slot: number, column: number): number {
    return this.#columns[slot * COLUMNS + column]!;
  }

  #resize(capacity: number): void {
    assert(capacity >= this.size, 'a ring must hold what it holds');
    const keys: string[] = [];
    for (let i = 0; i < capacity; i++) keys.push('');
    const columns = new Float64Array(capacity * COLUMNS);
    for (let sequence = this.#first; sequence < this.#next; sequence++) {
      const from = sequence & (this.#capacity - 1);
      const to = sequence & (capacity - 1);
      keys[to] = this.#keys[from]!;
      for (let c = 0; c < COLUMNS; c++) columns[to * COLUMNS + c] = this.#value(from, c);
    }
    this.#keys = keys;
    this.#columns = columns;
    this.#capacity = capacity;
  }
}
