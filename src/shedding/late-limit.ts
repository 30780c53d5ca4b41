/**
 * Limits open requests after something waited unread because the node had no CPU time left: only as many are admitted
 * as the node answers soon. Pure: time is an argument. It refuses no request itself.
 */

/**
 * The smallest limit. With fewer requests, each log entry of the node's partitions would hold fewer, and cost as
 * much.
 */
const LEAST = 512;
/** The limit is the number of requests that are answered in this time. */
const TARGET_MILLIS = 40;
/** The interval over which rates are measured, in milliseconds. */
const INTERVAL_MILLIS = 100;
/**
 * While nothing waits any more, the limit grows by this factor in each interval. If it were lifted at once, the next
 * queue would form.
 */
const GROWTH = 1.125;
/** If the event loop was idle for less than this fraction of an interval, the node had no CPU time left. */
const IDLE_FRACTION_MAX = 0.1;

/** A limit on open requests. */
export class LateLimit {
  readonly #most: number;
  #limit = Infinity;
  #isBusy = false;
  #answeredPerMilli = 0;
  /** The figures of this interval. */
  #sinceMillis: number;
  #answered = 0;
  #idleMillis = 0;
  #hasWaited = false;

  /** @param most above this, there is no limit any more */
  constructor(most: number, nowMillis: number) {
    this.#most = most;
    this.#sinceMillis = nowMillis;
  }

  /** The most requests that may be open now; `Infinity`: no limit. */
  get limit(): number {
    return this.#limit;
  }

  /** True if the node had no CPU time left in the last complete interval. */
  get isBusy(): boolean {
    return this.#isBusy;
  }

  /** Something waited unread. */
  waited(): void {
    if (this.#hasWaited) return;
    this.#hasWaited = true;
    this.#limit = Math.min(this.#limit, this.#answeredSoon);
  }

  /** Requests were answered. */
  answered(requests: number): void {
    this.#answered += requests;
  }

  /** Called regularly. @param idleMillis how long the event loop was idle since the last call */
  check(idleMillis: number, nowMillis: number): void {
    this.#idleMillis += idleMillis;
    const millis = nowMillis - this.#sinceMillis;
    if (millis < INTERVAL_MILLIS) return;
    this.#isBusy = this.#idleMillis < IDLE_FRACTION_MAX * millis;
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
