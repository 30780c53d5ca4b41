/**
 * The keys that the log has denied recently. The leader judges requests of these keys by the applied state first. It
 * proposes other requests directly, because most of them are granted. If a spent key is missing here, its request just
 * costs an entry, and the log denies it.
 */

/** A key is kept at least this long. It goes at the first denial of another key after that time has passed twice. */
const KNOWN_MILLIS = 30_000;
/** The maximum number of keys in each of the two sets. Spent keys beyond that are denied by the log. */
const KEYS_MAX = 10_000;
/**
 * After the state had no room for a key, all requests are judged first for this long, because more new keys may be
 * refused.
 */
const FULL_MILLIS = 10_000;

/** Two sets of keys: the recent one, and the one before it. */
export class LatelyDenied {
  #recent = new Set<string>();
  #before = new Set<string>();
  #sinceMillis = -Infinity;
  #fullUntilMillis = -Infinity;

  /** @param nowMillis group time */
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
