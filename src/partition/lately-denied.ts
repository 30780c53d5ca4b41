/**
 * The keys whose requests the log has denied lately. The leader judges a request for one of these by the applied state first, and proposes the
 * others without that, as most requests are granted. A spent key that is missing here costs one entry: the log denies its request. Safety
 * does not depend on it.
 */

/** A key is kept for so long at least. It goes when another key is denied later than that, and once more after as long again. */
const KNOWN_MILLIS = 30_000;
/** Each of the two sets holds so many keys at most; the log denies some requests for spent keys beyond that. */
const KEYS_MAX = 10_000;
/** When the state had no room for a key, all requests are judged first for so long: more new keys may be refused. */
const FULL_MILLIS = 10_000;

export class LatelyDenied {
  #recent = new Set<string>();
  #before = new Set<string>();
  #sinceMillis = -Infinity;
  #fullUntilMillis = -Infinity;

  /** @param nowMillis of the group */
  has(key: string, nowMillis: number): boolean {
    return this.#recent.has(key) || this.#before.has(key) || nowMillis < this.#fullUntilMillis;
  }

  denied(key: string, nowMillis: number): void {
    if (nowMillis - this.#sinceMillis >= KNOWN_MILLIS || this.#recent.size >= KEYS_MAX) {
      this.#before = this.#recent;
      this.#recent = new Set();
      this.#sinceMillis = nowMillis;
    }
    this.#recent.add(key);
  }

  /** The log found no room for a key. */
  refusedAtCapacity(nowMillis: number): void {
    this.#fullUntilMillis = nowMillis + FULL_MILLIS;
  }
}
