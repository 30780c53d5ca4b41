/** Windows that everybody shares: they begin at multiples of their length since 1970 in UTC, or with a calendar month. */

import type { Rule } from '../../api/rule.ts';
import { floorDiv } from './integers.ts';

const DAY_MILLIS = 86_400_000;
const LONGEST_MONTH_DAYS = 31;
/** From 1 March 0000 to 1 January 1970; years begin in March here, so that the day that may be missing is their last. */
const DAYS_BEFORE_1970 = 719_468;
const DAYS_PER_400_YEARS = 146_097;

/** When the window that `t` is in began. */
export function windowStart({ windowMillis, calendar }: Rule, t: number): number {
  return calendar === undefined ? t - (t % windowMillis) : monthStart(t);
}

/** When it is over: that millisecond belongs to the next one. */
export function windowEnd(rule: Rule, t: number): number {
  const start = windowStart(rule, t);
  if (rule.calendar === undefined) return start + rule.windowMillis;
  // However short the month, this is within the next one.
  return monthStart(start + LONGEST_MONTH_DAYS * DAY_MILLIS);
}

function monthStart(t: number): number {
  const day = floorDiv(t, DAY_MILLIS);
  const dayOfEra = (day + DAYS_BEFORE_1970) % DAYS_PER_400_YEARS;
  // The leap days before it out of the way, all years have 365 days. The last day of the era has no leap day before it.
  const leapDays = floorDiv(dayOfEra, 1_460) - floorDiv(dayOfEra, 36_524) + floorDiv(dayOfEra, 146_096);
  const year = floorDiv(dayOfEra - leapDays, 365);
  const dayOfYear = dayOfEra - (365 * year + floorDiv(year, 4) - floorDiv(year, 100));
  // Months from March on are 31, 30, 31, 30, 31 days long, again and again: 153 in five of them.
  const month = floorDiv(5 * dayOfYear + 2, 153);
  return (day - (dayOfYear - floorDiv(153 * month + 2, 5))) * DAY_MILLIS;
}
