/**
 * Two counters per key: what was granted in this aligned window, and in the one before, of which the share counts that a
 * rolling window still reaches.
 */

import { LIMIT_MAX, type Rule, WINDOW_MILLIS_MAX } from '../../api/rule.ts';
import { ceilDiv, floorDiv } from './integers.ts';
import type { Demand, KeyRun } from './meter.ts';
import { NumberMeter } from './number-meter.ts';

/** How long the windows were when the key was granted something last; then what was granted in that one and before. */
const WINDOW = 0;
const CURRENT = 1;
const PREVIOUS = 2;
/** The largest limit, and as much debt. */
const COUNT_MAX = 2 * LIMIT_MAX;

/**
 * At `e` milliseconds into its window a request finds spent: `current + previous * (windowMillis - e) / windowMillis`,
 * rounded down. That is below 2^53: no count is above two million, and no window above 2^32 milliseconds.
 *
 * **Guarantee.** Approximate, as if the window before had been granted evenly. At most the limit in every aligned window,
 * in the time that requests are judged at; in any rolling window at most the limit and the share `e / windowMillis`
 * of what the window before was granted, rounded up: up to twice the limit, if the window before was granted all
 * at once at its end, and no more than the limit, rounding apart, if it was granted evenly. It is the only meter
 * that does not round towards denial: 6.5 of 7 leave room for one more. Windows are not widened for group time.
 *
 * **A refund** gives back all of a grant, out of the counter that has it: that of the newest grant's window, or of the one
 * before, of which a share counts. Grants of earlier windows do not. Within its window the time of the key goes back to group time.
 *
 * **Bytes per key.** A row of eight words: none beyond `KEY_BYTES`, however much is granted.
 *
 * **After a change of the window** what was spent when the key was last granted something counts as granted then. What had
 * left the windows of before is forgotten.
 */
export class SlidingCounters extends NumberMeter {
  /** Of the key and the time that is worked on; between two calls they mean nothing. */
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

  /** At the end of the window after the one that it was granted something in. */
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

  /** What both windows hold as seen from `t`. */
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

  /** Milliseconds after `t` until at most `room` is spent. What is spent never rises by itself, nor from window to window. */
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

/** How far into a window `previous` is at most `room`, being more at its begin. */
function elapsedUntil(previous: number, room: number, windowMillis: number): number {
  // Rounded down it is, when the share that is left is less than one more than the room.
  return windowMillis - ceilDiv((room + 1) * windowMillis, previous) + 1;
}
