/**
 * The allowance for a clock that runs too fast. Until its node notices and hands its leaderships over, group time runs
 * ahead of real time by what that clock gains. The checkers treat the gained time as if it had passed. Judges nothing
 * itself.
 */
import type { NemesisBand } from './nemesis-log.ts';

export const FAST_CLOCK = 'fast-clock';
export const FAST_PPM_MAX = 50_000;
/** A few pings, a hand-over, and the delay of a loaded machine. */
export const FOUND_MILLIS_MAX = 6_000;

const NANOS_PER_MILLI = 1e6;

/**
 * The most that may have been gained in total up to a moment. Between two moments it was no more than the difference.
 */
export function gainedMillis(bands: readonly NemesisBand[], atNanos: number): number {
  let gained = 0;
  for (const { kind, startNanos } of bands) {
    if (kind !== FAST_CLOCK || startNanos >= atNanos) continue;
    const millis = Math.min(FOUND_MILLIS_MAX, (atNanos - startNanos) / NANOS_PER_MILLI);
    gained += (millis * FAST_PPM_MAX) / 1e6;
  }
  return gained;
}
