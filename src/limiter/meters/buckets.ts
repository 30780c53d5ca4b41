/**
 * The meter of token buckets and leaky buckets. Granted cost fills the bucket and drains at `limit` per window. Both
 * kinds use the same arithmetic: the tokens left in one are the free space in the other.
 */

import { capacityOf, LIMIT_MAX, type Rule } from '../../api/rule.ts';
import { ceilDiv, ceilScaled, floorDiv } from './integers.ts';
import { LOG_WINDOW_MILLIS_MAX } from './log-runs.ts';
import type { Demand, KeyRun } from './meter.ts';
import { NumberMeter } from './number-meter.ts';

/**
 * The level right after the newest grant, in parts of a cost; and how many parts a cost has, which is the window it was
 * judged by.
 */
const LEVEL = 0;
const PARTS = 1;

/** The largest capacity, and the same again as debt. */
const LEVEL_COST_MAX = 2 * LIMIT_MAX;
const LEVEL_MAX = LEVEL_COST_MAX * LOG_WINDOW_MILLIS_MAX;
/** The longest reported wait (about 8,900 years), so that no time exceeds 2^53. */
export const DRAIN_MILLIS_MAX = 2 ** 48;

/**
 * A unit of cost has as many parts as its window has milliseconds. Then exactly `limit` parts drain in each
 * millisecond, and nothing is rounded. A bucket never holds more than `LEVEL_COST_MAX` cost, and no window is longer
 * than 2^32 ms, so a level is at most 2,000,000 * 2^32 parts = 8.6 * 10^15, below 2^53. The drained amount is
 * multiplied out only where it is less than the level.
 *
 * **Guarantee.** In any interval of `e` milliseconds, in the time that requests are judged at, at most `burst + limit *
 * e / windowMillis` is granted, rounded down. For a leaky bucket, `queue` is added to `burst`; the requests that
 * proceed after their reported wait keep to the formula without `queue`. In group time the window is the widened one. In
 * real time the same holds except for less than what drains in one millisecond, because timestamps are whole
 * milliseconds; in intervals of a window or more it holds exactly.
 *
 * **A refund** gives back what was certainly in the bucket all the time from its grant to the newest grant: its cost
 * less what drains in between, rounded up. A bucket knows no more than that. So it gives back everything if nothing was
 * granted later. The level was never below that amount, so the result is as if that much less had been granted, and the
 * guarantee holds for grants minus refunds.
 *
 * **Bytes per key.** A row of eight words, included in `KEY_BYTES`, however much is granted.
 *
 * **After a change** of the limit, the content of the bucket drains at the new rate from the newest grant on, and
 * content above a smaller `burst` has to drain first. Where the window changes, as between requests with and without
 * timestamps, the level is converted, rounded up to a part of a cost.
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
    // Uses the configured window. The widened one, in group time, lets less drain.
    const { windowMillis } = rule;
    const elapsed = this.newestMillis(slot) - timeMillis;
    if (elapsed < 0 || elapsed >= ceilDiv(cost * windowMillis, rateOf(rule))) return;
    const back = cost - ceilDiv(elapsed * rateOf(rule), windowMillis);
    const level = this.numbers.number(slot, LEVEL);
    this.numbers.setNumber(slot, LEVEL, Math.max(0, level - back * this.numbers.number(slot, PARTS)));
  }

  /** The cost is in parts. */
  inspect(slot: number): readonly KeyRun[] {
    const cost = this.numbers.number(slot, LEVEL);
    return [{ timeMillis: this.newestMillis(slot), cost, windowMillis: this.numbers.number(slot, PARTS) }];
  }

  #levelAt(slot: number, { rule, t, windowMillis }: Demand): number {
    const level = this.#level(slot, windowMillis);
    const elapsed = t - this.numbers.newestMillis(slot);
    return elapsed >= ceilDiv(level, rateOf(rule)) ? 0 : level - elapsed * rateOf(rule);
  }

  /** The level after the newest grant, converted to `windowMillis` parts per cost. */
  #level(slot: number, windowMillis: number): number {
    const level = this.numbers.number(slot, LEVEL);
    const parts = this.numbers.number(slot, PARTS);
    if (level === 0 || parts === windowMillis) return level;
    return floorDiv(level, parts) * windowMillis + ceilScaled(level % parts, windowMillis, parts);
  }
}

/** Parts that drain in a millisecond. Under a limit of 0, older grants drain as under a limit of 1. */
function rateOf({ limit }: Rule): number {
  return Math.max(1, limit);
}

function millisToDrain(level: number, rule: Rule): number {
  return Math.min(ceilDiv(level, rateOf(rule)), DRAIN_MILLIS_MAX);
}
