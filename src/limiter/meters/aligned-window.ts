/**
 * Windows that are the same for all keys: they begin at multiples of their length since 1970 in UTC, or with a calendar
 * month.
 */

import type { Rule } from '../../api/rule.ts';
import { floorDiv } from './integers.ts';

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
