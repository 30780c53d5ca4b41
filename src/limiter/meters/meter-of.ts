/**
 * Which meter a rule is kept by, and how far its grants reach. Another kind of limit is a class of its own and a line in each
 * of these.
 */

import { capacityOf, type Rule } from '../../api/rule.ts';
import type { StateSize } from '../state/state-size.ts';
import type { UtcSteps } from '../state/utc-steps.ts';
import { isThrottle } from '../stated-rules.ts';
import { ArrivalTimes } from './arrival-times.ts';
import { Buckets, DRAIN_MILLIS_MAX } from './buckets.ts';
import { FixedWindows } from './fixed-windows.ts';
import { GranularLogs } from './granular-logs.ts';
import { ceilDiv } from './integers.ts';
import type { Meter } from './meter.ts';
import { SlidingCounters } from './sliding-counters.ts';
import { SlidingLogs } from './sliding-logs.ts';

/** In written forms the place of a kind in here is its number. */
export const METER_KINDS = [
  'log',
  'granular log',
  'counter',
  'fixed window',
  'bucket',
  'arrival time',
] as const;

/** Rules of one kind can be kept by one meter: their grants count under each of them. */
export type MeterKind = (typeof METER_KINDS)[number];

export function meterKindOf(rule: Rule): MeterKind {
  const { meter, granularityMillis } = rule;
  switch (meter) {
    case undefined:
    case 'slidingLog':
      return granularityMillis === undefined ? 'log' : 'granular log';
    case 'slidingCounter':
      return 'counter';
    case 'fixedWindow':
      return 'fixed window';
    case 'tokenBucket':
      return isThrottle(rule) ? 'arrival time' : 'bucket';
    case 'leakyBucket':
      return 'bucket';
    default: {
      const never: never = meter;
      return never;
    }
  }
}

export function meterOf(rule: Rule, size: StateSize, utc?: UtcSteps): Meter {
  const kind = meterKindOf(rule);
  switch (kind) {
    case 'log':
      return new SlidingLogs(size);
    case 'granular log':
      return new GranularLogs(size);
    case 'counter':
      return new SlidingCounters();
    case 'fixed window':
      return new FixedWindows(utc);
    case 'bucket':
      return new Buckets();
    case 'arrival time':
      return new ArrivalTimes();
    default: {
      const never: never = kind;
      return never;
    }
  }
}

/**
 * How long a grant counts at most, in group time: with what is granted that long before or after, it may make too much.
 *
 * @param windowMillis of the rule, in group time
 */
export function reachMillisOf(rule: Rule, windowMillis: number): number {
  const kind = meterKindOf(rule);
  switch (kind) {
    case 'log':
    case 'fixed window':
      return windowMillis;
    case 'granular log':
      return windowMillis + (rule.granularityMillis ?? 0);
    case 'counter':
      return 2 * windowMillis;
    case 'bucket':
      return Math.max(windowMillis, drainMillisOf(rule, windowMillis));
    case 'arrival time':
      return Math.max(windowMillis, drainMillisOf(rule, windowMillis + 1));
    default: {
      const never: never = kind;
      return never;
    }
  }
}

/** How long all that fits at once takes to flow out. */
function drainMillisOf(rule: Rule, windowMillis: number): number {
  return Math.min(DRAIN_MILLIS_MAX, ceilDiv(capacityOf(rule) * windowMillis, Math.max(1, rule.limit)));
}
