/**
 * The meter of sliding window counters, two per key: the cost of the current aligned window, and that of the window
 * before, which counts by the fraction that a rolling window still covers.
 */

import { LIMIT_MAX, type Rule, WINDOW_MILLIS_MAX } from '../../api/rule.ts';
import { ceilDiv, floorDiv } from './integers.ts';
import type { Demand, KeyRun } from './meter.ts';
import { NumberMeter } from './number-meter.ts';

/** The window length at the newest grant; then the cost in that window, and in the one before. */
const WINDOW = 0;
const CURRENT = 1;
const PREVIOUS = 2;
/** The largest limit, and the same again as debt. */
const COUNT_MAX = 2 * LIMIT_MAX;

/**
 * `e` milliseconds into its window, a request finds `current + previous * (windowMillis - e) / windowMillis` spent,
 * rounded down. That is below 2^53: no count exceeds two million, and no window 2^32 milliseconds.
 *
 * **Guarantee.** Approximate, as if the grants of the window before were spread evenly. At most the limit in every
 * aligned window, in the time that requests are judged at. In any rolling window at most the limit plus the fraction `e
 * / windowMillis` of the grants in the window before, rounded up: up to twice the limit if the window before was
 * granted all at once at its end, and no more than the limit, apart from rounding, if it was granted evenly. This is
 * the only meter that does not round towards denial: 6.5 of 7 leave room for one more. Windows are not widened for
 * group time.
 *
 * **A refund** gives back all of a grant, from the counter that holds it: that of the newest grant's window, or of the
 * one before, which counts only partly. Grants of earlier windows no longer count. Within its window, the time of the
 * key goes back to group time.
 *
 * **Bytes per key.** A row of eight words, included in `KEY_BYTES`, however much is granted.
 *
 * **After a change of the window**, the cost that was spent at the key's newest grant counts as granted then. What had
 * left the old windows by then is forgotten.
 */
export class SlidingCounters extends NumberMeter {
  /** The counts of the key and time that are being processed. They have no meaning between two calls. */
  #current = 0;
  #previous = 0;

  constructor() {
    super([
      { name: 'window', min: 1, max: WINDOW_MILLIS_MAX },
      { name: 'current count', min: 0, max: COUNT_MAX },
      { name: 'previous count', min: 0, max: COUNT_MAX },
    ]);
  }

  liveCost(slot: number, { rule, t }: Demand): number {
    this.#open(slot, rule, t);
    return this.#spent(rule.windowMillis, t % rule.windowMillis);
  }

  millisUntilAvailable(slot: number, { rule, t }: Demand, cost: number): number {
    if (cost > rule.limit) return Infinity;
    this.#open(slot, rule, t);
    return this.#millisUntil(rule.limit - cost, rule.windowMillis, t);
  }

  millisUntilEmpty(slot: number, { rule, t }: Demand): number {
    this.#open(slot, rule, t);
    return this.#millisUntil(0, rule.windowMillis, t);
  }

  /** At the end of the window after the one with the newest grant. */
  idleAtMillis(slot: number, _windowMillis: number, { windowMillis }: Rule): number {
    const newestMillis = this.newestMillis(slot);
    return newestMillis - (newestMillis % windowMillis) + 2 * windowMillis;
  }

  grant(slot: number, { rule, t, cost }: Demand): void {
    this.#open(slot, rule, t);
    this.numbers.setNewestMillis(slot, t);
    this.numbers.setNumber(slot, WINDOW, rule.windowMillis);
    this.numbers.setNumber(slot, CURRENT, Math.min(COUNT_MAX, this.#current + cost));
    this.numbers.setNumber(slot, PREVIOUS, this.#previous);
  }

  refund(slot: number, timeMillis: number, cost: number, { windowMillis }: Rule, nowMillis: number): void {
    const newestMillis = this.newestMillis(slot);
    const windowsAgo = floorDiv(newestMillis, windowMillis) - floorDiv(timeMillis, windowMillis);
    if (windowsAgo > 1) return;
    const counter = windowsAgo === 0 ? CURRENT : PREVIOUS;
    this.numbers.setNumber(slot, counter, Math.max(0, this.numbers.number(slot, counter) - cost));
    const isSameWindow = floorDiv(nowMillis, windowMillis) === floorDiv(newestMillis, windowMillis);
    if (isSameWindow) this.numbers.setNewestMillis(slot, Math.min(newestMillis, nowMillis));
  }

  inspect(slot: number): readonly KeyRun[] {
    const timeMillis = this.newestMillis(slot);
    const windowMillis = this.numbers.number(slot, WINDOW);
    return [PREVIOUS, CURRENT].map((i) => ({
      timeMillis,
      cost: this.numbers.number(slot, i),
      windowMillis,
    }));
  }

  /** Loads what both windows hold as seen from `t`. */
  #open(slot: number, { windowMillis }: Rule, t: number): void {
    const { numbers } = this;
    const newestMillis = numbers.newestMillis(slot);
    const before = numbers.number(slot, WINDOW);
    this.#current = numbers.number(slot, CURRENT);
    this.#previous = numbers.number(slot, PREVIOUS);
    if (before !== windowMillis && before !== 0) {
      this.#current = Math.min(COUNT_MAX, this.#spent(before, newestMillis % before));
      this.#previous = 0;
    }
    const windowsSince = floorDiv(t, windowMillis) - floorDiv(newestMillis, windowMillis);
    if (windowsSince === 0) return;
    this.#previous = windowsSince === 1 ? this.#current : 0;
    this.#current = 0;
  }

  #spent(windowMillis: number, elapsedMillis: number): number {
    return this.#current + floorDiv(this.#previous * (windowMillis - elapsedMillis), windowMillis);
  }

  /**
   * Milliseconds after `t` until at most `room` is spent. The spent cost never rises by itself, not even at the start
   * of a window.
   */
  #millisUntil(room: number, windowMillis: number, t: number): number {
    const elapsed = t % windowMillis;
    if (this.#spent(windowMillis, elapsed) <= room) return 0;
    if (this.#current <= room) {
      const until = elapsedUntil(this.#previous, room - this.#current, windowMillis);
      if (until < windowMillis) return until - elapsed;
    }
    const next = windowMillis - elapsed;
    if (this.#current <= room) return next;
    return next + elapsedUntil(this.#current, room, windowMillis);
  }
}

/** How far into a window the remainder of `previous` falls to `room`. At the start of the window it is more. */
function elapsedUntil(previous: number, room: number, windowMillis: number): number {
  // Rounded down it is at most `room` as soon as the exact value is less than `room + 1`.
  return windowMillis - ceilDiv((room + 1) * windowMillis, previous) + 1;
}
