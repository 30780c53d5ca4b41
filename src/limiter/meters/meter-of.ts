/**
 * Which meter keeps a rule, and how long its grants count. Every place that a new meter needs is in README.md ("Add a
 * meter").
 */

import { capacityOf, type Rule } from '../../api/rule.ts';
import type { StateSize } from '../state/state-size.ts';
import type { UtcSteps } from '../state/utc-steps.ts';
import { isThrottle } from '../rules.ts';
import { ArrivalTimes } from './arrival-times.ts';
import { Buckets, DRAIN_MILLIS_MAX } from './buckets.ts';
import { FixedWindows } from './fixed-windows.ts';
import { GranularLogs } from './granular-logs.ts';
import { ceilDiv } from './integers.ts';
import type { Meter } from './meter.ts';
import { SlidingCounters } from './sliding-counters.ts';
import { SlidingLogs } from './sliding-logs.ts';

/** Written formats store the index of a kind in this list, so the order must not change. */
export const METER_KINDS = [
  'log',
  'granular log',
  'counter',
  'fixed window',
  'bucket',
  'arrival time',
] as const;

/** Rules of one kind can use one meter: grants under one of them count under the others. */
export type MeterKind = (typeof METER_KINDS)[number];

/** The kind of meter that keeps `rule`. */
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

/**
 * A new, empty meter for `rule`.
 *
 * @param size the meter adds its memory to this
 * @param utc the steps of UTC, for fixed windows
 */
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
 * How long a grant counts at most, in milliseconds of group time. Grants further apart than that never exceed the limit
 * together.
 *
 * @param windowMillis the rule's window in group time
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

/** How long a full bucket takes to drain. */
function drainMillisOf(rule: Rule, windowMillis: number): number {
  return Math.min(DRAIN_MILLIS_MAX, ceilDiv(capacityOf(rule) * windowMillis, Math.max(1, rule.limit)));
}
