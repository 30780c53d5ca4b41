/**
 * The 99th percentile of answer times, by minute, for a day. A finished minute is kept as one step (time-steps.ts);
 * only the current minute has counts. Memory is fixed.
 */
import { USAGE_MINUTES_MAX } from '../api/usage.ts';
import { LATE, quantileStep, stepOf, TIME_STEPS } from './time-steps.ts';

/** A minute in which nothing was timed; other minutes are stored as their step + 1. */
const NOTHING = 0;

/** The percentiles of one node. */
export class MinuteTimes {
  readonly #counts = new Uint32Array(TIME_STEPS);
  /** By slot: the minute that is stored there. A slot with another minute is outdated. */
  readonly #minuteOf = new Float64Array(USAGE_MINUTES_MAX).fill(-1);
  readonly #late = new Uint8Array(USAGE_MINUTES_MAX);
  #minute = -1;

  /** Sets the current minute, counted since 1970. Returning to a minute starts it again. */
  turnTo(minute: number): void {
    if (minute === this.#minute) return;
    if (this.#minute >= 0) this.#keep();
    this.#counts.fill(0);
    this.#minute = minute;
  }

  /** Counts an answer that took this long. */
  took(millis: number): void {
    const step = stepOf(millis);
    this.#counts[step] = (this.#counts[step] ?? 0) + 1;
  }

  /** By minute, up to `untilMinute`: 0 if nothing was timed, else the step of the 99th percentile + 1. */
  late(minutes: number, untilMinute: number): number[] {
    return Array.from({ length: minutes }, (_, i) => this.#lateIn(untilMinute + 1 - minutes + i));
  }

  #lateIn(minute: number): number {
    if (minute < 0) return NOTHING;
    if (minute === this.#minute) return quantileStep(this.#counts, LATE) + 1;
    const slot = minute % USAGE_MINUTES_MAX;
    return this.#minuteOf[slot] === minute ? (this.#late[slot] ?? NOTHING) : NOTHING;
  }

  #keep(): void {
    const slot = this.#minute % USAGE_MINUTES_MAX;
    this.#minuteOf[slot] = this.#minute;
    this.#late[slot] = quantileStep(this.#counts, LATE) + 1;
  }
}
