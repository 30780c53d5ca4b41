/**
 * Customer commands of operators that wait for a place in the log. They get entries of their own, in the order in which
 * they came.
 */
import type { CustomerRequest } from '../api/customer.ts';
import { changesRecord, CUSTOMER_REQUESTS_MAX } from '../limiter/log/customer-entry.ts';

/** Each reset goes through all rules. */
const RESETS_PER_ENTRY_MAX = 16;
/** Each change may carry some kilobytes. */
const CHANGES_PER_ENTRY_MAX = 256;

/** A first-in-first-out queue. */
export class CustomerQueue<T extends { readonly request: CustomerRequest }> {
  #waiting: T[] = [];

  get size(): number {
    return this.#waiting.length;
  }

  add(waiter: T): void {
    this.#waiting.push(waiter);
  }

  /** Takes as many as one entry may hold, up to `max`: few resets, and at most one change of each record. */
  take(max: number): T[] {
    const changed = new Set<string>();
    let resets = 0;
    let count = 0;
    while (count < Math.min(max, CUSTOMER_REQUESTS_MAX) && count < this.#waiting.length) {
      const { userId, action } = this.#waiting[count]!.request;
      if (action.type === 'reset' || action.type === 'set') resets += 1;
      if (resets > RESETS_PER_ENTRY_MAX) break;
      if (changesRecord(action)) {
        if (changed.has(userId) || changed.size === CHANGES_PER_ENTRY_MAX) break;
        changed.add(userId);
      }
      count += 1;
    }
    return this.#waiting.splice(0, count);
  }

  takeAll(): T[] {
    const all = this.#waiting;
    this.#waiting = [];
    return all;
  }
}
