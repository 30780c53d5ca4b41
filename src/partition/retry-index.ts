/**
 * By which key a retry finds the request that waits to be decided, so that it can join it. It answers nobody.
 * Bounded by those who wait: each is in here once at most.
 */

/** `retryKey`: see `requestKeyOf`; undefined for what cannot be retried. */
export class RetryIndex<T extends { readonly retryKey: string | undefined }> {
  readonly #byKey = new Map<string, T>();

  /** The request that waits under this key. */
  find(retryKey: string): T | undefined {
    return this.#byKey.get(retryKey);
  }

  /** From now on retries find it, unless another request waits under its key: that one was first. */
  add(waiting: T): void {
    const { retryKey } = waiting;
    if (retryKey !== undefined && !this.#byKey.has(retryKey)) this.#byKey.set(retryKey, waiting);
  }

  /** It was answered. */
  delete(waiting: T): void {
    const { retryKey } = waiting;
    if (retryKey !== undefined && this.#byKey.get(retryKey) === waiting) this.#byKey.delete(retryKey);
  }
}
