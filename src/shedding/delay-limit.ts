/**
 * How many requests may be open at a time, found by how long they have to wait (after CoDel: the smallest delay of an interval
 * tells a standing queue from a burst). While even the quickest waits for longer than the target, fewer are let in; when that is
 * over, more again. Arithmetic: time comes as an argument, and it refuses nobody itself.
 */

export interface DelayLimitInit {
  /** It never lets in fewer: so few make no queue, and whatever is slow then is slow by itself. */
  readonly least: number;
  /** What is let in while nothing waits. */
  readonly most: number;
  /** A smallest delay above this is a queue that stands. */
  readonly targetMillis: number;
}

/** Over which the smallest delay is taken. */
export const INTERVAL_MILLIS = 100;
/** A burst may take so long before anybody is refused for it, and so many looks: a process that hardly runs has few. */
export const PATIENCE_MILLIS = 500;
const PATIENCE_OBSERVATIONS = 25;
/** With fewer looks in an interval it goes on: one pause of the process is no queue. */
const OBSERVATIONS_MIN = 3;
/** How much is taken away at once, by how far the target is missed. */
const CUT_MIN = 0.3;
const CUT_MAX = 0.9;
/** While the limit refuses, it grows by this part. */
const GROWTH = 1 / 8;

export class DelayLimit {
  readonly #init: DelayLimitInit;
  #limit: number;
  #sinceMillis = -Infinity;
  #observations = 0;
  #smallestMillis = Infinity;
  #lastSmallestMillis = 0;
  /** Since when every interval has missed the target, and how often it was looked since. */
  #standsSinceMillis = Infinity;
  #standsObservations = 0;
  /** Of this interval: the most that were open, and whether anybody was refused. */
  #peak = 0;
  #hasRefused = false;

  constructor(init: DelayLimitInit) {
    this.#init = init;
    this.#limit = init.most;
  }

  get limit(): number {
    return this.#limit;
  }

  /** Fewer are let in than could be. */
  get isLowered(): boolean {
    return this.#limit < this.#init.most;
  }

  /** Of the last whole interval, in milliseconds. */
  get smallestDelayMillis(): number {
    return this.#lastSmallestMillis;
  }

  /** How many more may come in while `open` are; not above 0: none. */
  roomBeside(open: number): number {
    if (open > this.#peak) this.#peak = open;
    return this.#limit - open;
  }

  /** Somebody was refused for want of that room. */
  refused(): void {
    this.#hasRefused = true;
  }

  /** Somebody has waited for so long. @param nowMillis must not run back */
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
      // From what there was, not from what there might have been.
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
