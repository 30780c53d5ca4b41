/**
 * Finds the waiting request that a retry can join, by its key. Bounded by the number of waiting requests, each of which
 * is listed at most once.
 */

/** An index of waiting requests. `retryKey`: see `requestKeyOf`; undefined for requests without retries. */
export class RetryIndex<T extends { readonly retryKey: string | undefined }> {
  readonly #byKey = new Map<string, T>();

  /** The request that waits under this key. */
  find(retryKey: string): T | undefined {
    return this.#byKey.get(retryKey);
  }

  /** From now on retries find this request, unless an earlier one waits under the same key. */
  add(waiting: T): void {
    const { retryKey } = waiting;
    if (retryKey !== undefined && !this.#byKey.has(retryKey)) this.#byKey.set(retryKey, waiting);
  }

  /** The request was answered. */
  delete(waiting: T): void {
    const { retryKey } = waiting;
    if (retryKey !== undefined && this.#byKey.get(retryKey) === waiting) this.#byKey.delete(retryKey);
  }
}
