/**
 * Which keys a leader has denied lately. Only their requests are judged by the applied state before the log is asked: most requests are
 * granted, and to judge them twice costs a leader a tenth of its time. Who is missing here is denied by the log, once. It is told, and
 * nothing depends on it but who judges first.
 */

/** A key is known for as long as this at least, and until others were denied for as long. */
const KNOWN_MILLIS = 30_000;
/** Of half of them. More spent keys at a time are denied by the log now and then. */
const KEYS_MAX = 10_000;
/** A state without room refuses whoever is new, so everybody is judged first. */
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

  /** Somebody found no room. */
  refusedAtCapacity(nowMillis: number): void {
    this.#fullUntilMillis = nowMillis + FULL_MILLIS;
  }
}
