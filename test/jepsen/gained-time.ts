/**
 * What a run allows a clock that is too fast: until its node has found out, and handed over what it leads, group time runs
 * ahead of real time by what that clock gains. The judges count that time as if it had passed. Judges nothing itself.
 */
import type { NemesisBand } from './nemesis-log.ts';

export const FAST_CLOCK = 'fast-clock';
export const FAST_PPM_MAX = 50_000;
/** A few pings, a hand-over, and what a loaded machine adds. */
export const FOUND_MILLIS_MAX = 6_000;

const NANOS_PER_MILLI = 1e6;

/** How much may have been gained up to a moment, in all. Between two moments it was no more than the difference. */
export function gainedMillis(bands: readonly NemesisBand[], atNanos: number): number {
  let gained = 0;
  for (const { kind, startNanos } of bands) {
    if (kind !== FAST_CLOCK || startNanos >= atNanos) continue;
    const millis = Math.min(FOUND_MILLIS_MAX, (atNanos - startNanos) / NANOS_PER_MILLI);
    gained += (millis * FAST_PPM_MAX) / 1e6;
  }
  return gained;
}
