/**
 * The grants of one key: a ring of (time, cumulative cost) runs that answers how much of a rolling window is
 * spent. It knows no rules, users or clocks; the caller brings the time, the window and the limit.
 */

import { assert } from './assert.ts';

/** Offsets and cumulative costs are unsigned 32-bit words. */
const U32_MAX = 0xffff_ffff;

/** The longest window a log can hold in milliseconds: every live run must be within one offset of its base. */
export const LOG_WINDOW_MILLIS_MAX = U32_MAX;

/** Below this many runs a ring is not worth shrinking. */
const SHRINK_CAPACITY_MIN = 16;
const FIRST_CAPACITY = 4;

const NO_RUNS = new Uint32Array(0);

/**
 * A grant at `g` counts for a request at `t` when `g > t - windowMillis`; one exactly a window old is out.
 *
 * Only `grant` changes anything, and it forgets only what was outside the window *it was given*. So:
 * - While the window stays the same or shrinks, every total is exact.
 * - After the window grew, all that is still recorded counts again under the longer window, and every later
 *   grant counts in full. What had left the shorter window by the time of the newest grant may be forgotten: a
 *   rolling window that reaches back before the change can hold up to what the old rule had granted there on
 *   top of the new limit. A window that starts at or after the change never exceeds the limit.
 * - After the limit fell, recorded cost may exceed it. Nothing fits until enough of it has left the window.
 */
export class SlidingLog {
  /** Time of offset 0, in milliseconds. Meaningless while `#count` is 0. */
  #baseMillis = 0;
  /**
   * Pairs of words: offset from `#baseMillis`, cumulative cost (mod 2^32) up to and including the run.
   * Offsets strictly increase from head to tail: grants of one millisecond are one run.
   */
  #runs = NO_RUNS;
  #head = 0;
  #count = 0;
  /** Cumulative cost before the head run (mod 2^32). Recorded cost = the tail's cumulative cost minus this. */
  #spentBeforeHead = 0;

  /** Time of the newest grant in milliseconds; 0 when nothing was ever granted. Later requests clamp up to it. */
  get newestMillis(): number {
    return this.#count === 0 ? 0 : this.runMillis(this.#count - 1);
  }

  /** Number of recorded runs, live or not yet forgotten. */
  get runCount(): number {
    return this.#count;
  }

  /** Number of runs the ring has room for; 8 bytes each. */
  get capacity(): number {
    return this.#runs.length >>> 1;
  }

  /** Makes room for `runs` runs at once, where they are known to come. */
  reserve(runs: number): void {
    if (runs > this.capacity) this.#resize(runs);
  }

  /** The time of recorded run `i`, 0 being the oldest. */
  runMillis(i: number): number {
    return this.#baseMillis + this.#offset(i);
  }

  /** The cost granted at the time of recorded run `i`. */
  runCost(i: number): number {
    return (this.#cumulative(i) - (i === 0 ? this.#spentBeforeHead : this.#cumulative(i - 1))) >>> 0;
  }

  /** The cost that counts for a request at `t`. Changes nothing, however far in the future `t` lies. */
  liveCost(t: number, windowMillis: number): number {
    if (this.#count === 0) return 0;
    const first = this.#firstLive(t - windowMillis);
    if (first === this.#count) return 0;
    return (this.#cumulative(this.#count - 1) - this.#spentBefore(first)) >>> 0;
  }

  /**
   * Records a grant and forgets what is outside the window at `t`. Amortised O(1).
   *
   * @param t milliseconds, >= `newestMillis`
   * @param cost >= 1
   * @param windowMillis 1 .. `LOG_WINDOW_MILLIS_MAX`; the longest window anybody will still ask about
   * @param limit the rule's limit: the ring does not grow beyond it unless more is really recorded
   */
  grant(t: number, cost: number, windowMillis: number, limit: number): void {
    assert(t >= this.newestMillis, `grant at ${t} is older than the newest grant at ${this.newestMillis}`);
    assert(cost >= 1, `grant of cost ${cost}`);
    assert(windowMillis <= LOG_WINDOW_MILLIS_MAX, `window of ${windowMillis} ms`);
    this.#prune(t - windowMillis);
    if (this.#count === 0) {
      this.#baseMillis = t;
      this.#head = 0;
    } else if (t - this.#baseMillis > U32_MAX) {
      this.#rebase();
    }
    const offset = t - this.#baseMillis;
    assert(offset <= U32_MAX, `offset ${offset} of a grant does not fit`);

    const before = this.#count === 0 ? this.#spentBeforeHead : this.#cumulative(this.#count - 1);
    const recorded = (before - this.#spentBeforeHead) >>> 0;
    assert(recorded + cost <= U32_MAX, `recorded cost ${recorded} + ${cost} does not fit`);
    if (this.#count > 0 && this.#offset(this.#count - 1) === offset) {
      this.#runs[this.#word(this.#count - 1) + 1] = before + cost;
      return;
    }
    this.#makeRoom(limit);
    const word = this.#word(this.#count);
    this.#count++;
    this.#runs[word] = offset;
    this.#runs[word + 1] = before + cost;
  }

  /**
   * Milliseconds after `t` until `cost` more fits under `limit`: 0 when it fits at `t`, `Infinity` when
   * `cost > limit`. O(log n).
   */
  millisUntilAvailable(t: number, cost: number, limit: number, windowMillis: number): number {
    if (cost > limit) return Infinity;
    if (this.#count === 0) return 0;
    const first = this.#firstLive(t - windowMillis);
    if (first === this.#count) return 0;
    const spent = this.#spentBefore(first);
    const excess = ((this.#cumulative(this.#count - 1) - spent) >>> 0) + cost - limit;
    if (excess <= 0) return 0;
    // The first run by whose expiry at least `excess` has left. The last run always qualifies: cost <= limit.
    let low = first;
    let high = this.#count - 1;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if ((this.#cumulative(middle) - spent) >>> 0 >= excess) high = middle;
      else low = middle + 1;
    }
    return this.runMillis(low) + windowMillis - t;
  }

  /** Milliseconds after `t` until nothing counts any more; 0 when nothing does at `t`. */
  millisUntilEmpty(t: number, windowMillis: number): number {
    return this.#count === 0 ? 0 : Math.max(0, this.newestMillis + windowMillis - t);
  }

  /** The first recorded run newer than `horizonMillis`, or the run count. O(1) when it is near the head. */
  #firstLive(horizonMillis: number): number {
    const horizon = horizonMillis - this.#baseMillis;
    const last = this.#count - 1;
    if (last < 0 || this.#offset(0) > horizon) return 0;
    if (this.#offset(last) <= horizon) return this.#count;
    // Gallop from the head: what expired since the last grant is usually one run or two.
    let expired = 0;
    let live = 1;
    while (live < last && this.#offset(live) <= horizon) {
      expired = live;
      live = Math.min(live * 2, last);
    }
    while (live - expired > 1) {
      const middle = (live + expired) >>> 1;
      if (this.#offset(middle) > horizon) live = middle;
      else expired = middle;
    }
    return live;
  }

  #prune(horizonMillis: number): void {
    const first = this.#firstLive(horizonMillis);
    if (first === 0) return;
    this.#spentBeforeHead = this.#cumulative(first - 1);
    this.#head = (this.#head + first) % this.capacity;
    this.#count -= first;
    if (this.capacity >= SHRINK_CAPACITY_MIN && this.#count < this.capacity >>> 2) {
      this.#resize(this.capacity >>> 1);
    }
  }

  /** Moves the base to the head run. A run lives through few of these: a window is shorter than the offsets reach. */
  #rebase(): void {
    const shift = this.#offset(0);
    for (let i = 0; i < this.#count; i++) {
      const word = this.#word(i);
      this.#runs[word] = this.#word32(word) - shift;
    }
    this.#baseMillis += shift;
  }

  #makeRoom(limit: number): void {
    if (this.#count < this.capacity) return;
    const doubled = Math.max(FIRST_CAPACITY, this.capacity * 2);
    // More runs than the limit are recorded only when the pruning window is wider than the counting one.
    this.#resize(limit > this.#count ? Math.min(doubled, limit) : doubled);
  }

  #resize(capacity: number): void {
    const runs = new Uint32Array(capacity * 2);
    for (let i = 0; i < this.#count; i++) {
      const word = this.#word(i);
      runs[i * 2] = this.#word32(word);
      runs[i * 2 + 1] = this.#word32(word + 1);
    }
    this.#runs = runs;
    this.#head = 0;
  }

  #spentBefore(i: number): number {
    return i === 0 ? this.#spentBeforeHead : this.#cumulative(i - 1);
  }

  #offset(i: number): number {
    return this.#word32(this.#word(i));
  }

  #cumulative(i: number): number {
    return this.#word32(this.#word(i) + 1);
  }

  /** The index of run `i`'s first word. */
  #word(i: number): number {
    const slot = (this.#head + i) * 2;
    return slot < this.#runs.length ? slot : slot - this.#runs.length;
  }

  #word32(word: number): number {
    // Indices come from #word, which stays inside the ring; a default such as `?? 0` would hide a bug.
    return this.#runs[word]!;
  }
}
