/**
 * Requests with an id that wait to be decided, so that a retry can join its first attempt. It answers nobody.
 * Bounded by those who wait: each is in here once at most.
 */
import type { AllowRequest } from '../api/request.ts';

/** What retries are recognised by: the id and the user, whatever else they ask for. Undefined without an id. */
export function retryKeyOf({ userId, requestId }: AllowRequest): string | undefined {
  // The length makes it unambiguous whatever characters the parts contain.
  return requestId === undefined ? undefined : `${userId.length}:${userId}${requestId}`;
}

export class Attempts<T extends { readonly retryKey: string | undefined }> {
  readonly #byKey = new Map<string, T>();

  /** The attempt that waits under this key. */
  find(retryKey: string): T | undefined {
    return this.#byKey.get(retryKey);
  }

  /** From now on retries find it, unless another request waits under its key: that one was first. */
  add(attempt: T): void {
    const { retryKey } = attempt;
    if (retryKey !== undefined && !this.#byKey.has(retryKey)) this.#byKey.set(retryKey, attempt);
  }

  /** It was answered. */
  delete(attempt: T): void {
    const { retryKey } = attempt;
    if (retryKey !== undefined && this.#byKey.get(retryKey) === attempt) this.#byKey.delete(retryKey);
  }
}
