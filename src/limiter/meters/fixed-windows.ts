/** A counter per key and aligned window: a quota that begins anew with each minute, day or month. */

import { FIXED_LIMIT_MAX, type Rule } from '../../api/rule.ts';
import { UtcSteps } from '../state/utc-steps.ts';
import { windowEnd, windowStart } from './aligned-window.ts';
import type { Demand, KeyRun } from './meter.ts';
import { NumberMeter } from './number-meter.ts';

/** What was granted in the window of the newest grant. */
const COUNT = 0;
/** What was granted in other windows before UTC was stepped, if they had not ended then; and the time of the newest such grant. */
const CARRIED = 1;
const CARRIED_AT = 2;
/** The largest limit, and as much debt. */
const COUNT_MAX = 2 * FIXED_LIMIT_MAX;
const NO_STEPS = new UtcSteps();

/**
 * Its time is UTC: that of callers, or group time and what UTC is ahead of it (`UtcSteps`).
 *
 * **Guarantee.** In each window that begins at a multiple of `windowMillis` since 1970, or with a month, in UTC and in the
 * time that requests are judged at, at most the limit is granted. Of two windows that touch, as much may be granted
 * around where they do: up to twice the limit within a moment. Windows are not widened for group time, so that they
 * stay aligned: in real time one may be shorter by what clocks differ (`clockDriftPpm`).
 *
 * **When UTC is stepped** nothing is freed: what was granted before counts as long in group time as it would have without the step, on
 * top of what is granted in windows of UTC since then. Where steps meet within a window or two, what was granted between them may count longer,
 * by no more than was stepped. Each step may begin a window early by wall clocks that are wrong, so that in real time once more the limit
 * is granted around it. Who brings timestamps knows UTC: there what was granted counts to the end of its window, and no longer.
 *
 * **A refund** gives back all of a grant that was made in the window of the newest one; of any before, nothing counts, or it was
 * carried and stays. Within that window the time of the key goes back to that of the entry.
 *
 * **Bytes per key.** A row of eight words: none beyond `KEY_BYTES`, however much is granted.
 *
 * **After a change.** What was granted in the window of the newest grant counts as made at its time, in the window that the new
 * rule has there. If windows grew, what an earlier one held is forgotten: the window in which the rule changed may
 * hold up to what the old rule granted in it on top of the new limit, and every later one keeps to the limit.
 */
export class FixedWindows extends NumberMeter {
  readonly #utc: UtcSteps;

  constructor(utc = NO_STEPS) {
    super([
      { name: 'count', min: 0, max: COUNT_MAX },
      { name: 'count before a step', min: 0, max: COUNT_MAX },
      { name: 'time of what was before a step', min: 0, max: Number.MAX_SAFE_INTEGER },
    ]);
    this.#utc = utc;
  }

  liveCost(slot: number, { rule, t, isEvent = false }: Demand): number {
    return this.#count(slot, rule, t, isEvent) + this.#carried(slot, rule, t, isEvent);
  }

  millisUntilAvailable(slot: number, demand: Demand, cost: number): number {
    const { rule, t, isEvent = false } = demand;
    if (cost > rule.limit) return Infinity;
    const count = this.#count(slot, rule, t, isEvent);
    const carried = this.#carried(slot, rule, t, isEvent);
    if (count + carried + cost <= rule.limit) return 0;
    const countMillis = this.#endOf(rule, this.newestMillis(slot), t, isEvent) - t;
    const carriedMillis = this.#endOf(rule, this.numbers.number(slot, CARRIED_AT), t, isEvent) - t;
    if (carried === 0) return countMillis;
    if (count === 0) return carriedMillis;
    // One of them leaves first, and that may be enough.
    const left = countMillis < carriedMillis ? carried : count;
    return left + cost <= rule.limit
      ? Math.min(countMillis, carriedMillis)
      : Math.max(countMillis, carriedMillis);
  }

  millisUntilEmpty(slot: number, { rule, t, isEvent = false }: Demand): number {
    const isCounted = this.#count(slot, rule, t, isEvent) > 0;
    const isCarried = this.#carried(slot, rule, t, isEvent) > 0;
    const countMillis = isCounted ? this.#endOf(rule, this.newestMillis(slot), t, isEvent) - t : 0;
    return isCarried
      ? Math.max(countMillis, this.#endOf(rule, this.numbers.number(slot, CARRIED_AT), t, isEvent) - t)
      : countMillis;
  }

  /** As far as UTC is ahead now. */
  idleAtMillis(slot: number, _windowMillis: number, rule: Rule): number {
    const endMillis = this.#lastEndOf(rule, this.newestMillis(slot));
    if (this.numbers.number(slot, CARRIED) === 0) return endMillis;
    return Math.max(endMillis, this.#lastEndOf(rule, this.numbers.number(slot, CARRIED_AT)));
  }

  grant(slot: number, { rule, t, cost }: Demand): void {
    const { numbers } = this;
    const newestMillis = numbers.newestMillis(slot);
    const count = this.#count(slot, rule, t, false);
    const carried = this.#carried(slot, rule, t, false);
    if (carried === 0) this.#setCarried(slot, 0, 0);
    const isStepped = count > 0 && this.#utc.aheadAt(t) !== this.#utc.aheadAt(newestMillis);
    const isSameWindow = t < windowEnd(rule, newestMillis);
    const isOfOther = carried > 0 && numbers.number(slot, CARRIED_AT) < windowStart(rule, newestMillis);
    if (isStepped && isSameWindow && isOfOther) {
      // Carried together, what another window left would be held as long as this one. So the time of the newest grant stays.
      numbers.setNumber(slot, COUNT, Math.min(COUNT_MAX, count + cost));
      return;
    }
    if (isStepped) this.#carry(slot, rule, count, carried);
    numbers.setNumber(slot, COUNT, Math.min(COUNT_MAX, (isStepped ? 0 : count) + cost));
    numbers.setNewestMillis(slot, t);
  }

  /** Adds what the window of the newest grant holds to what is carried. All of that counts until the last of it is out. */
  #carry(slot: number, rule: Rule, count: number, carried: number): void {
    const newestMillis = this.newestMillis(slot);
    const beforeMillis = this.numbers.number(slot, CARRIED_AT);
    const isLast =
      carried === 0 || this.#lastEndOf(rule, newestMillis) >= this.#lastEndOf(rule, beforeMillis);
    this.#setCarried(slot, Math.min(COUNT_MAX, carried + count), isLast ? newestMillis : beforeMillis);
  }

  #setCarried(slot: number, cost: number, atMillis: number): void {
    this.numbers.setNumber(slot, CARRIED, cost);
    this.numbers.setNumber(slot, CARRIED_AT, atMillis);
  }

  refund(slot: number, timeMillis: number, cost: number, rule: Rule, nowMillis: number): void {
    const newestMillis = this.newestMillis(slot);
    const startMillis = windowStart(rule, newestMillis);
    if (timeMillis < startMillis) return;
    this.numbers.setNumber(slot, COUNT, Math.max(0, this.numbers.number(slot, COUNT) - cost));
    if (nowMillis >= startMillis) this.numbers.setNewestMillis(slot, Math.min(newestMillis, nowMillis));
  }

  inspect(slot: number): readonly KeyRun[] {
    const carried = {
      timeMillis: this.numbers.number(slot, CARRIED_AT),
      cost: this.numbers.number(slot, CARRIED),
    };
    const counted = { timeMillis: this.newestMillis(slot), cost: this.numbers.number(slot, COUNT) };
    return carried.cost === 0 ? [counted] : [carried, counted];
  }

  /** What counts of the window of the newest grant. */
  #count(slot: number, rule: Rule, t: number, isEvent: boolean): number {
    return t < this.#endOf(rule, this.numbers.newestMillis(slot), t, isEvent)
      ? this.numbers.number(slot, COUNT)
      : 0;
  }

  /** What counts of windows that UTC was stepped out of. */
  #carried(slot: number, rule: Rule, t: number, isEvent: boolean): number {
    const carried = this.numbers.number(slot, CARRIED);
    return carried > 0 && t < this.#endOf(rule, this.numbers.number(slot, CARRIED_AT), t, isEvent)
      ? carried
      : 0;
  }

  /** Until when what was granted at `millis` counts, as it is reckoned at `t`: what was skipped since does not count as passed. */
  #endOf(rule: Rule, millis: number, t: number, isEvent: boolean): number {
    const endMillis = windowEnd(rule, millis);
    return isEvent ? endMillis : endMillis + this.#utc.aheadAt(t) - this.#utc.aheadAt(millis);
  }

  /** The same as it is reckoned now. */
  #lastEndOf(rule: Rule, millis: number): number {
    return windowEnd(rule, millis) + this.#utc.aheadMillis - this.#utc.aheadAt(millis);
  }
}
