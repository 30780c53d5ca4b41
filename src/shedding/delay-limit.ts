/**
 * Finds how many requests may be open at a time from how long they wait. As in CoDel (RFC 8289), the smallest delay
 * of an interval distinguishes a lasting queue from a burst: if even the quickest request waits longer than the
 * target, fewer are admitted; when that is over, more again. Pure: time is an argument. It refuses no request itself.
 */

/** The bounds and the target. */
export interface DelayLimitInit {
  /**
   * The limit never falls below this. So few requests cannot form a queue; if they are slow, there is another cause.
   */
  readonly least: number;
  /** The limit while nothing waits. */
  readonly most: number;
  /** If the smallest delay of an interval is above this, there is a lasting queue. */
  readonly targetMillis: number;
}

/** The interval over which the smallest delay is taken, in milliseconds. */
export const INTERVAL_MILLIS = 100;
/**
 * A burst may last this long, and this many observations, before requests are refused. A process that gets little CPU
 * time makes few observations.
 */
export const PATIENCE_MILLIS = 500;
const PATIENCE_OBSERVATIONS = 25;
/** An interval with fewer observations is extended, because one pause of the process is not a queue. */
const OBSERVATIONS_MIN = 3;
/** The bounds of the factor by which the limit is cut at once; it depends on how far the target is missed. */
const CUT_MIN = 0.3;
const CUT_MAX = 0.9;
/** While the limit refuses requests, it grows by this fraction in each interval. */
const GROWTH = 1 / 8;

/** A limit on open requests. */
export class DelayLimit {
  readonly #init: DelayLimitInit;
  #limit: number;
  #sinceMillis = -Infinity;
  #observations = 0;
  #smallestMillis = Infinity;
  #lastSmallestMillis = 0;
  /** Since when every interval has missed the target, and the number of observations since then. */
  #standsSinceMillis = Infinity;
  #standsObservations = 0;
  /** In this interval: the most open requests, and whether a request was refused. */
  #peak = 0;
  #hasRefused = false;

  constructor(init: DelayLimitInit) {
    this.#init = init;
    this.#limit = init.most;
  }

  /** The most requests that may be open now. */
  get limit(): number {
    return this.#limit;
  }

  /** True if the limit is below its maximum. */
  get isLowered(): boolean {
    return this.#limit < this.#init.most;
  }

  /** The smallest delay of the last complete interval, in milliseconds. */
  get smallestDelayMillis(): number {
    return this.#lastSmallestMillis;
  }

  /** How many more requests may come in while `open` are open; 0 or less: none. */
  roomBeside(open: number): number {
    if (open > this.#peak) this.#peak = open;
    return this.#limit - open;
  }

  /** A request was refused because there was no room. */
  refused(): void {
    this.#hasRefused = true;
  }

  /** A request has waited `delayMillis`. @param nowMillis must not run back */
  observe(delayMillis: number, nowMillis: number): void {
    if (this.#sinceMillis === -Infinity) this.#sinceMillis = nowMillis;
    if (delayMillis < this.#smallestMillis) this.#smallestMillis = delayMillis;
    this.#observations += 1;
    if (nowMillis - this.#sinceMillis < INTERVAL_MILLIS || this.#observations < OBSERVATIONS_MIN) return;
    this.#adjust(this.#smallestMillis, nowMillis);
    this.#sinceMillis = nowMillis;
    this.#observations = 0;
    this.#lastSmallestMillis = this.#smallestMillis;
    this.#smallestMillis = Infinity;
    this.#peak = 0;
    this.#hasRefused = false;
  }

  #adjust(delayMillis: number, nowMillis: number): void {
    const { least, most, targetMillis } = this.#init;
    if (delayMillis > targetMillis) {
      this.#standsSinceMillis = Math.min(this.#standsSinceMillis, this.#sinceMillis);
      this.#standsObservations += this.#observations;
      if (!this.isLowered && this.#mayBeBurst(nowMillis)) return;
      const cut = Math.min(CUT_MAX, Math.max(CUT_MIN, targetMillis / delayMillis));
      // From the number that was really open, because the limit itself may be much higher.
      this.#limit = Math.max(least, Math.floor(Math.min(this.#limit, this.#peak) * cut));
      return;
    }
    this.#standsSinceMillis = Infinity;
    this.#standsObservations = 0;
    if (this.isLowered) {
      const more = this.#hasRefused ? Math.ceil(this.#limit * GROWTH) : this.#limit;
      this.#limit = Math.min(most, this.#limit + more);
    }
  }

  #mayBeBurst(nowMillis: number): boolean {
    return (
      nowMillis - this.#standsSinceMillis < PATIENCE_MILLIS ||
      this.#standsObservations < PATIENCE_OBSERVATIONS
    );
  }
}
