/**
 * The 99th percentile of how long answers took, by the minute for a day: of each minute one step (`time-steps.ts`), of the one under
 * way the counts. Memory is fixed. It reads no clock.
 */
import { USAGE_MINUTES_MAX } from '../api/usage.ts';
import { LATE, quantileStep, stepOf, TIME_STEPS } from './time-steps.ts';

/** Stands for a minute in which nothing was timed; all others are one more than their step. */
const NOTHING = 0;

export class MinuteTimes {
  readonly #counts = new Uint32Array(TIME_STEPS);
  /** By slot: the minute that is kept there; nothing is believed of a slot under another one. */
  readonly #minuteOf = new Float64Array(USAGE_MINUTES_MAX).fill(-1);
  readonly #late = new Uint8Array(USAGE_MINUTES_MAX);
  #minute = -1;

  /** What is told from now on happened in this minute, since 1970. A minute that comes again begins anew. */
  turnTo(minute: number): void {
    if (minute === this.#minute) return;
    if (this.#minute >= 0) this.#keep();
    this.#counts.fill(0);
    this.#minute = minute;
  }

  took(millis: number): void {
    const step = stepOf(millis);
    this.#counts[step] = (this.#counts[step] ?? 0) + 1;
  }

  /** By minute, up to `untilMinute`: 0 where nothing was timed, otherwise one more than the step of the 99th percentile. */
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
