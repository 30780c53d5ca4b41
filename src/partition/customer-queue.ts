/** What operators say of keys, and waits for a place in the log: entries of its own, in the order in which it came. It answers nobody. */
import type { CustomerRequest } from '../api/customer.ts';
import { changesRecord, CUSTOMER_REQUESTS_MAX } from '../limiter/log/customer-entry.ts';

/** Each looks through all rules. */
const RESETS_PER_ENTRY_MAX = 16;
/** Each may bring some kilobytes along. */
const CHANGES_PER_ENTRY_MAX = 256;

export class CustomerQueue<T extends { readonly request: CustomerRequest }> {
  #waiting: T[] = [];

  get size(): number {
    return this.#waiting.length;
  }

  add(waiter: T): void {
    this.#waiting.push(waiter);
  }

  /** As many as one entry may hold, up to `max`: few resets, and no record is changed twice. */
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
