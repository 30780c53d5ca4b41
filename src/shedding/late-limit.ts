/**
 * How many requests may be open since something waited unread because the node had no time left: as many as it answers soon. It
 * takes time as an argument, and refuses nobody itself.
 */

/** A few entries of a node's partitions: with fewer, each entry would hold less, and cost as much. */
const LEAST = 512;
/** As many may be open as are answered in this time. */
const TARGET_MILLIS = 40;
/** Over which rates are taken. */
const INTERVAL_MILLIS = 100;
/** While nothing waits any more, so many times as many in each interval: all at once would be the next queue. */
const GROWTH = 1.125;
/** A loop that waits for less than this part of an interval has no time left. */
const IDLE_SHARE_MAX = 0.1;

export class LateLimit {
  readonly #most: number;
  #limit = Infinity;
  #isBusy = false;
  #answeredPerMilli = 0;
  /** Of this interval. */
  #sinceMillis: number;
  #answered = 0;
  #idleMillis = 0;
  #hasWaited = false;

  /** @param most beyond which it is no limit any more */
  constructor(most: number, nowMillis: number) {
    this.#most = most;
    this.#sinceMillis = nowMillis;
  }

  /** `Infinity`: there is none. */
  get limit(): number {
    return this.#limit;
  }

  /** The node had no time left in the last whole interval. */
  get isBusy(): boolean {
    return this.#isBusy;
  }

  /** Something waited unread. */
  waited(): void {
    if (this.#hasWaited) return;
    this.#hasWaited = true;
    this.#limit = Math.min(this.#limit, this.#answeredSoon);
  }

  answered(requests: number): void {
    this.#answered += requests;
  }

  /** @param idleMillis how long the event loop waited since the last call */
  look(idleMillis: number, nowMillis: number): void {
    this.#idleMillis += idleMillis;
    const millis = nowMillis - this.#sinceMillis;
    if (millis < INTERVAL_MILLIS) return;
    this.#isBusy = this.#idleMillis < IDLE_SHARE_MAX * millis;
    this.#answeredPerMilli = this.#answered / millis;
    if (this.#hasWaited) this.#limit = this.#answeredSoon;
    else this.#limit = this.#limit < this.#most ? Math.ceil(this.#limit * GROWTH) : Infinity;
    this.#sinceMillis = nowMillis;
    this.#answered = 0;
    this.#idleMillis = 0;
    this.#hasWaited = false;
  }

  get #answeredSoon(): number {
    return Math.max(LEAST, this.#answeredPerMilli * TARGET_MILLIS);
  }
}
