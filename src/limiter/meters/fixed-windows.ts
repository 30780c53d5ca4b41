/**
 * The meter of fixed windows: one counter per key, a quota that starts anew with each minute, day or month of UTC. The
 * windows are the same for all keys: they begin at multiples of their length since 1970 in UTC, or with a calendar
 * month.
 */

import { FIXED_LIMIT_MAX, type Rule } from '../../api/rule.ts';
import { UtcSteps } from '../state/utc-steps.ts';
import type { Demand, KeyRun } from './meter.ts';
import { NumberMeter } from './number-meter.ts';
import { floorDiv } from './integers.ts';

/** The cost granted in the window of the newest grant. */
const COUNT = 0;
/**
 * The cost granted in other windows before UTC was stepped, if they had not ended by then; and the time of the newest
 * such grant.
 */
const CARRIED = 1;
const CARRIED_AT = 2;
/** The largest limit, and the same again as debt. */
const COUNT_MAX = 2 * FIXED_LIMIT_MAX;
const NO_STEPS = new UtcSteps();

/**
 * Its time is UTC: the caller's timestamps, or group time plus how far UTC is ahead of it (`UtcSteps`).
 *
 * **Guarantee.** In each window that begins at a multiple of `windowMillis` since 1970, or with a month, in UTC and in
 * the time that requests are judged at, at most the limit is granted. Around the boundary of two windows, up to twice
 * the limit can be granted within a moment. Windows are not widened for group time, so that they stay aligned: in real
 * time a window may be shorter by the difference of the clocks (`clockDriftPpm`).
 *
 * **A step of UTC** frees nothing. Grants made before it count as long in group time as they would have without the
 * step, on top of the grants in UTC windows after it. If several steps fall into a window or two, grants made
 * between them may count longer, by no more than the size of the steps. Each step can begin a window early by wrong
 * wall clocks, so that in real time the limit is granted once more around it. A caller that sends timestamps knows UTC
 * itself: there a grant counts exactly to the end of its window.
 *
 * **A refund** gives back all of a grant in the window of the newest grant. Earlier grants either no longer count, or
 * were carried over and stay. Within that window, the time of the key goes back to the time of the entry.
 *
 * **Bytes per key.** A row of eight words, included in `KEY_BYTES`, however much is granted.
 *
 * **After a change**, the grants in the window of the newest grant count as made at its time, in the window that
 * the new rule has there. If windows grew, grants of earlier windows are forgotten: the window in which the rule
 * changed may hold what the old rule granted in it on top of the new limit; every later window keeps to the limit.
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
    // Whichever leaves first may make enough room.
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

  /** With the present offset of UTC. */
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
      // Carrying the count over would hold the cost of the other window as long as this one. So it is not carried, and
      // the time of the newest grant stays.
      numbers.setNumber(slot, COUNT, Math.min(COUNT_MAX, count + cost));
      return;
    }
    if (isStepped) this.#carry(slot, rule, count, carried);
    numbers.setNumber(slot, COUNT, Math.min(COUNT_MAX, (isStepped ? 0 : count) + cost));
    numbers.setNewestMillis(slot, t);
  }

  /**
   * Adds the count of the newest grant's window to the carried cost. All of it counts until the last part of it is out.
   */
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

  /** The cost that counts of the window of the newest grant. */
  #count(slot: number, rule: Rule, t: number, isEvent: boolean): number {
    return t < this.#endOf(rule, this.numbers.newestMillis(slot), t, isEvent)
      ? this.numbers.number(slot, COUNT)
      : 0;
  }

  /** The cost that counts of windows that ended in a step of UTC. */
  #carried(slot: number, rule: Rule, t: number, isEvent: boolean): number {
    const carried = this.numbers.number(slot, CARRIED);
    return carried > 0 && t < this.#endOf(rule, this.numbers.number(slot, CARRIED_AT), t, isEvent)
      ? carried
      : 0;
  }

  /**
   * Until when a grant made at `millis` counts, computed at `t`. Time that UTC skipped in between does not count as
   * passed.
   */
  #endOf(rule: Rule, millis: number, t: number, isEvent: boolean): number {
    const endMillis = windowEnd(rule, millis);
    return isEvent ? endMillis : endMillis + this.#utc.aheadAt(t) - this.#utc.aheadAt(millis);
  }

  /** The same, computed with the present offset of UTC. */
  #lastEndOf(rule: Rule, millis: number): number {
    return windowEnd(rule, millis) + this.#utc.aheadMillis - this.#utc.aheadAt(millis);
  }
}

const DAY_MILLIS = 86_400_000;
const LONGEST_MONTH_DAYS = 31;
/**
 * Days from 1 March 0000 to 1 January 1970. Years begin in March here, so that a leap day is the last day of its year.
 */
const DAYS_BEFORE_1970 = 719_468;
const DAYS_PER_400_YEARS = 146_097;

/** When the window that contains `t` began, in milliseconds since 1970. */
export function windowStart({ windowMillis, calendar }: Rule, t: number): number {
  return calendar === undefined ? t - (t % windowMillis) : monthStart(t);
}

/** When the window that contains `t` ends; that millisecond belongs to the next window. */
export function windowEnd(rule: Rule, t: number): number {
  const start = windowStart(rule, t);
  if (rule.calendar === undefined) return start + rule.windowMillis;
  // However short the month is, this lies within the next one.
  return monthStart(start + LONGEST_MONTH_DAYS * DAY_MILLIS);
}

function monthStart(t: number): number {
  const day = floorDiv(t, DAY_MILLIS);
  const dayOfEra = (day + DAYS_BEFORE_1970) % DAYS_PER_400_YEARS;
  // Without the leap days before it, each year has 365 days. No leap day precedes the last day of the era.
  const leapDays = floorDiv(dayOfEra, 1_460) - floorDiv(dayOfEra, 36_524) + floorDiv(dayOfEra, 146_096);
  const year = floorDiv(dayOfEra - leapDays, 365);
  const dayOfYear = dayOfEra - (365 * year + floorDiv(year, 4) - floorDiv(year, 100));
  // From March on, months repeat with 31, 30, 31, 30, 31 days: 153 days in five months.
  const month = floorDiv(5 * dayOfYear + 2, 153);
  return (day - (dayOfYear - floorDiv(153 * month + 2, 5))) * DAY_MILLIS;
}
