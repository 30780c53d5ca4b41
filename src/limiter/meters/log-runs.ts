/**
 * The sliding log of one key: a ring of runs (time, cumulative cost) that answers how much of a rolling window is
 * spent. A `LogRuns` points to memory owned by somebody else and only changes it for refunds. It knows no rules, users
 * or clocks: the caller passes the time, the window and the limit.
 */

import { copyWords } from '../state/block-pool.ts';

/** Offsets and cumulative costs are unsigned 32-bit words. */
const U32_MAX = 0xffff_ffff;

/** The longest window of a log in milliseconds: all live runs must be within one 32-bit offset of the base. */
export const LOG_WINDOW_MILLIS_MAX = U32_MAX;

/**
 * The maximum total cost in one log. A single window never reaches it, but a caller whose timestamps run ahead makes a
 * log keep more than one window: up to 60,000 windows of a millisecond.
 */
export const COST_SUM_MAX = U32_MAX;

/**
 * The two forms of a log; a run takes `1 << form` words. In a narrow log all runs cost 1, so cumulative costs are
 * implied. In a wide log they are stored.
 */
export const NARROW = 0;
export const WIDE = 1;

const NO_WORDS = new Uint32Array(0);

/**
 * A view of one key's log. A grant at `g` counts for a request at `t` if `g > t - windowMillis`: a grant exactly one
 * window old is out.
 */
export class LogRuns {
  /** The time of offset 0, in milliseconds. No meaning while `count` is 0. */
  baseMillis = 0;
  /** `NARROW` or `WIDE`. */
  form = NARROW;
  /**
   * From word `start` on: `capacity` offsets from `baseMillis`; in a wide log followed by as many cumulative costs (mod
   * 2^32), each including its own run. Offsets strictly increase from head to tail: grants in the same millisecond are
   * one run.
   */
  words: Uint32Array = NO_WORDS;
  start = 0;
  /** How many runs the ring has room for. */
  capacity = 0;
  /** Index of the oldest run, 0 to `capacity - 1`. */
  head = 0;
  /** Number of recorded runs, including those that no longer count but are not forgotten yet. */
  count = 0;
  /**
   * Copies of the oldest and newest offset; no meaning while `count` is 0. Code that changes these runs must update the
   * copies.
   */
  oldestOffset = 0;
  newestOffset = 0;
  /**
   * Cumulative cost before the oldest run (mod 2^32). The recorded cost is the cumulative cost of the newest run minus
   * this.
   */
  spentBeforeHead = 0;

  /** Time of the newest grant in milliseconds; 0 if nothing is recorded. */
  get newestMillis(): number {
    return this.count === 0 ? 0 : this.baseMillis + this.newestOffset;
  }

  /** The time of recorded run `i`, 0 being the oldest. */
  millis(i: number): number {
    return this.baseMillis + this.offset(i);
  }

  /** The cost granted at the time of recorded run `i`. */
  cost(i: number): number {
    return this.#costOf(i, i + 1);
  }

  /** The cost of all recorded runs. */
  get recordedCost(): number {
    return this.#costOf(0, this.count);
  }

  /** The cost that counts for a request at `t`. */
  liveCost(t: number, windowMillis: number): number {
    return this.#costOf(this.firstLive(t - windowMillis), this.count);
  }

  /**
   * Milliseconds after `t` until `cost` more fits under `limit`: 0 if it fits at `t`, `Infinity` if `cost > limit`.
   * O(log n).
   */
  millisUntilAvailable(t: number, cost: number, limit: number, windowMillis: number): number {
    if (cost > limit) return Infinity;
    const first = this.firstLive(t - windowMillis);
    const excess = this.#costOf(first, this.count) + cost - limit;
    if (excess <= 0) return 0;
    // Find the first run by whose expiry at least `excess` has left. The last run always qualifies, because cost <=
    // limit.
    if (this.form === NARROW) return this.millis(first + excess - 1) + windowMillis - t;
    let low = first;
    let high = this.count - 1;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (this.#costOf(first, middle + 1) >= excess) high = middle;
      else low = middle + 1;
    }
    return this.millis(low) + windowMillis - t;
  }

  /** Milliseconds after `t` until nothing counts any more; 0 if nothing counts at `t`. */
  millisUntilEmpty(t: number, windowMillis: number): number {
    const last = this.spentCount - 1;
    if (last < 0) return 0;
    const lastMillis = last === this.count - 1 ? this.newestMillis : this.millis(last);
    return Math.max(0, lastMillis + windowMillis - t);
  }

  /** The newest run was refunded completely and only marks the time of the key. No other run can be empty. */
  get isNewestTakenBack(): boolean {
    return this.form === WIDE && this.count > 0 && this.cost(this.count - 1) === 0;
  }

  /** Number of runs with a cost. They are the oldest ones. */
  get spentCount(): number {
    return this.isNewestTakenBack ? this.count - 1 : this.count;
  }

  /** The first recorded run newer than `horizonMillis`, or the run count. O(1) when it is near the head. */
  firstLive(horizonMillis: number): number {
    const horizon = horizonMillis - this.baseMillis;
    const last = this.count - 1;
    // Usually both ends are enough to answer, and no run is read.
    if (last < 0 || this.isAllAfter(horizonMillis)) return 0;
    if (this.newestOffset <= horizon) return this.count;
    // Gallop from the head: usually one or two runs have expired since the last grant.
    let expired = 0;
    let live = 1;
    while (live < last && this.offset(live) <= horizon) {
      expired = live;
      live = Math.min(live * 2, last);
    }
    while (live - expired > 1) {
      const middle = (live + expired) >>> 1;
      if (this.offset(middle) > horizon) live = middle;
      else expired = middle;
    }
    return live;
  }

  /** Are all recorded runs newer than `horizonMillis`? Reads none of them. */
  isAllAfter(horizonMillis: number): boolean {
    return this.oldestOffset > horizonMillis - this.baseMillis;
  }

  /** Updates the copies of both ends after a run has changed. */
  readEnds(): void {
    this.oldestOffset = this.count === 0 ? 0 : this.offset(0);
    this.newestOffset = this.count === 0 ? 0 : this.offset(this.count - 1);
  }

  /** Copies the runs in order to `target` from word `start` on, as a log of that form and capacity. */
  copyTo(target: Uint32Array, start: number, capacity: number, form: number): void {
    this.#copyColumn(0, target, start);
    if (form === NARROW) return;
    if (this.form === WIDE) this.#copyColumn(this.capacity, target, start + capacity);
    else for (let i = 0; i < this.count; i += 1) target[start + capacity + i] = this.cumulative(i);
  }

  /** Subtracts `cost` from `run`, which keeps some cost. Only a wide log has such a run. */
  takeFrom(run: number, cost: number): void {
    if (this.count - run <= run) this.#addCumulative(run, this.count, -cost);
    else {
      this.#addCumulative(0, run, cost);
      this.spentBeforeHead = (this.spentBeforeHead + cost) >>> 0;
    }
  }

  /** Removes a run that is not the newest. */
  removeRun(run: number): void {
    const cost = this.cost(run);
    if (this.count - run <= run) {
      if (this.form === WIDE) this.#addCumulative(run + 1, this.count, -cost);
      for (let i = run; i < this.count - 1; i += 1) this.#copyRun(i + 1, i);
    } else {
      if (this.form === WIDE) this.#addCumulative(0, run, cost);
      this.spentBeforeHead = (this.spentBeforeHead + cost) >>> 0;
      for (let i = run; i > 0; i -= 1) this.#copyRun(i - 1, i);
      this.head = (this.head + 1) % this.capacity;
    }
    this.count -= 1;
  }

  #copyRun(from: number, to: number): void {
    const source = this.word(from);
    const target = this.word(to);
    this.words[target] = this.words[source]!;
    if (this.form === WIDE) this.words[target + this.capacity] = this.words[source + this.capacity]!;
  }

  /** Adds to the cumulative costs of the runs from `from` up to, but excluding, `to`. */
  #addCumulative(from: number, to: number, cost: number): void {
    const { words, start, capacity, head } = this;
    // At most two contiguous stretches, so that the loops need not check for the end of the ring.
    const wrap = Math.min(Math.max(capacity - head, from), to);
    const ahead = start + capacity + head;
    for (let at = ahead + from; at < ahead + wrap; at += 1) words[at] = (words[at]! + cost) | 0;
    const behind = ahead - capacity;
    for (let at = behind + wrap; at < behind + to; at += 1) words[at] = (words[at]! + cost) | 0;
  }

  /** The offset of recorded run `i` from `baseMillis`. */
  offset(i: number): number {
    return this.words[this.word(i)]!;
  }

  /** The cumulative cost up to and including run `i` (mod 2^32). */
  cumulative(i: number): number {
    if (this.form === NARROW) return (this.spentBeforeHead + i + 1) >>> 0;
    return this.words[this.word(i) + this.capacity]!;
  }

  /** The word with the offset of run `i`; for `i = count`, where the next run would go. */
  word(i: number): number {
    const place = this.head + i;
    // Indexes stay inside the ring. A default such as `?? 0` at the reader would hide a bug.
    return this.start + (place < this.capacity ? place : place - this.capacity);
  }

  #copyColumn(column: number, target: Uint32Array, to: number): void {
    const { words, count, capacity, head } = this;
    const from = this.start + column;
    const untilEnd = Math.min(count, capacity - head);
    copyWords(words, from + head, target, to, untilEnd);
    copyWords(words, from, target, to + untilEnd, count - untilEnd);
  }

  /** The cost of the runs from `from` up to, but excluding, `to`. */
  #costOf(from: number, to: number): number {
    if (this.form === NARROW) return to - from;
    if (from === to) return 0;
    const spentBefore = from === 0 ? this.spentBeforeHead : this.cumulative(from - 1);
    return (this.cumulative(to - 1) - spentBefore) >>> 0;
  }
}
