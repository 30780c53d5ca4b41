/**
 * Buckets: what was granted flows out at `limit` per window, and what is still in there is spent. Token bucket and leaky
 * bucket are one arithmetic, seen from either side: tokens that are left, or cost that has not flowed out.
 */

import { capacityOf, LIMIT_MAX, type Rule } from '../../api/rule.ts';
import { ceilDiv, ceilScaled, floorDiv } from './integers.ts';
import { LOG_WINDOW_MILLIS_MAX } from './log-runs.ts';
import type { Demand, KeyRun } from './meter.ts';
import { NumberMeter } from './number-meter.ts';

/** The level right after the newest grant, in parts of a cost; and how many parts a cost has: the window it was judged by. */
const LEVEL = 0;
const PARTS = 1;

/** The largest capacity, and as much debt. */
const LEVEL_COST_MAX = 2 * LIMIT_MAX;
const LEVEL_MAX = LEVEL_COST_MAX * LOG_WINDOW_MILLIS_MAX;
/** No wait is said to be longer, so that no time is beyond 2^53: some 8,900 years. */
export const DRAIN_MILLIS_MAX = 2 ** 48;

/**
 * A cost has as many parts as its window has milliseconds, so each millisecond lets exactly `limit` parts flow out, and
 * nothing is rounded. A bucket is never above `LEVEL_COST_MAX` costs full, and no window is longer than 2^32 ms: a level is
 * at most 2,000,000 * 2^32 parts, which is 8.6 * 10^15, below 2^53. How much flowed out is multiplied only where it is less
 * than the level.
 *
 * **Guarantee.** In any interval of `e` milliseconds, in the time that requests are judged at, at most
 * `burst + limit * e / windowMillis` is granted, rounded down; `queue` comes on top of `burst` for a leaky bucket, and
 * those who go on when they were told to keep to the same without it. In group time the window is the widened one: in
 * real time the same holds but for less than what flows out in one millisecond, as stamps are whole milliseconds, and
 * in intervals of a window or more exactly.
 *
 * **A refund** gives back what certainly was in the bucket all the time from its grant to the newest one: its cost, less what
 * flows out meanwhile, rounded up, and no more is known of a bucket. So all of it while nothing was granted later. The
 * level was never below that: it is the level as if so much less had been granted, and the guarantee holds for what was
 * granted less what was given back.
 *
 * **Bytes per key.** A row of eight words: none beyond `KEY_BYTES`, however much is granted.
 *
 * **After a change** of the limit what is in the bucket flows out at the new rate from the newest grant on, and what is
 * above a smaller `burst` has to flow out first. Where the window changes, as between requests with timestamps and
 * without, the level is carried over, rounded up to a part of a cost.
 */
export class Buckets extends NumberMeter {
  constructor() {
    super([
      { name: 'level', min: 0, max: LEVEL_MAX },
      { name: 'parts', min: 1, max: LOG_WINDOW_MILLIS_MAX },
    ]);
  }

  liveCost(slot: number, demand: Demand): number {
    return ceilDiv(this.#levelAt(slot, demand), demand.windowMillis);
  }

  millisUntilAvailable(slot: number, demand: Demand, cost: number): number {
    const { rule, windowMillis } = demand;
    const room = capacityOf(rule) - cost;
    if (room < 0) return Infinity;
    const level = this.#levelAt(slot, demand);
    return millisToDrain(Math.max(0, level - room * windowMillis), rule);
  }

  millisUntilEmpty(slot: number, demand: Demand): number {
    return millisToDrain(this.#levelAt(slot, demand), demand.rule);
  }

  idleAtMillis(slot: number, windowMillis: number, rule: Rule): number {
    return this.newestMillis(slot) + millisToDrain(this.#level(slot, windowMillis), rule);
  }

  grant(slot: number, demand: Demand): void {
    const { t, cost, windowMillis } = demand;
    const level = this.#levelAt(slot, demand) + cost * windowMillis;
    this.numbers.setNumber(slot, LEVEL, Math.min(LEVEL_COST_MAX * windowMillis, level));
    this.numbers.setNumber(slot, PARTS, windowMillis);
    this.numbers.setNewestMillis(slot, t);
  }

  refund(slot: number, timeMillis: number, cost: number, rule: Rule): void {
    // By the window as it was stated: a wider one, in group time, lets less flow out.
    const { windowMillis } = rule;
    const elapsed = this.newestMillis(slot) - timeMillis;
    if (elapsed < 0 || elapsed >= ceilDiv(cost * windowMillis, rateOf(rule))) return;
    const back = cost - ceilDiv(elapsed * rateOf(rule), windowMillis);
    const level = this.numbers.number(slot, LEVEL);
    this.numbers.setNumber(slot, LEVEL, Math.max(0, level - back * this.numbers.number(slot, PARTS)));
  }

  /** Its cost in parts. */
  inspect(slot: number): readonly KeyRun[] {
    const cost = this.numbers.number(slot, LEVEL);
    return [{ timeMillis: this.newestMillis(slot), cost, windowMillis: this.numbers.number(slot, PARTS) }];
  }

  #levelAt(slot: number, { rule, t, windowMillis }: Demand): number {
    const level = this.#level(slot, windowMillis);
    const elapsed = t - this.numbers.newestMillis(slot);
    return elapsed >= ceilDiv(level, rateOf(rule)) ? 0 : level - elapsed * rateOf(rule);
  }

  /** The level after the newest grant, where a cost has `windowMillis` parts. */
  #level(slot: number, windowMillis: number): number {
    const level = this.numbers.number(slot, LEVEL);
    const parts = this.numbers.number(slot, PARTS);
    if (level === 0 || parts === windowMillis) return level;
    return floorDiv(level, parts) * windowMillis + ceilScaled(level % parts, windowMillis, parts);
  }
}

/** Parts that flow out in a millisecond. Of a rule that denies all: of what was granted before it did, slowly. */
function rateOf({ limit }: Rule): number {
  return Math.max(1, limit);
}

function millisToDrain(level: number, rule: Rule): number {
  return Math.min(ceilDiv(level, rateOf(rule)), DRAIN_MILLIS_MAX);
}
