/**
 * How far UTC is ahead of group time. When a whole group is down, its group time does not advance
 * (raft/driver/group-clock.ts), so it falls behind UTC with every outage. Log entries say by how much, and fixed
 * windows use the sum, because their days are days of UTC. Nothing else does: sliding windows and buckets count in
 * group time alone and ignore wall clocks.
 */

import { TIMESTAMP_MILLIS_MAX } from '../../api/request.ts';
import { WINDOW_MILLIS_MAX } from '../../api/rule.ts';

/** One step of UTC, as snapshots store it. */
export interface UtcStep {
  /** The first millisecond of UTC that was not reached before the step, by the offset before it. */
  readonly fromMillis: number;
  /** How far UTC is ahead of group time from then on, in milliseconds. */
  readonly aheadMillis: number;
}

/** Wall clocks show no later time. Together with group time it still fits a safe integer. */
export const UTC_AHEAD_MILLIS_MAX = TIMESTAMP_MILLIS_MAX;
/**
 * The maximum number of steps. One more replaces the last, and what happened between the two counts as before both.
 * Clocks that are off by 500 ppm cause 43 steps a day.
 */
export const UTC_STEPS_MAX = 4_096;
/** No window reaches back that far. */
const KEPT_MILLIS = 2 * WINDOW_MILLIS_MAX;

/** The steps of one group. */
export class UtcSteps {
  /** In order; both fields increase. The first step also covers everything before it. */
  #steps: UtcStep[] = [{ fromMillis: 0, aheadMillis: 0 }];

  /** How far UTC is ahead now, in milliseconds. */
  get aheadMillis(): number {
    return this.#steps.at(-1)!.aheadMillis;
  }

  get all(): readonly UtcStep[] {
    return this.#steps;
  }

  /**
   * How far UTC was ahead at this time of UTC. A time that a step skipped, which only callers can name, counts as after
   * the step.
   */
  aheadAt(utcMillis: number): number {
    const steps = this.#steps;
    let low = 0;
    for (let high = steps.length - 1; low < high;) {
      const middle = (low + high + 1) >>> 1;
      if (steps[middle]!.fromMillis <= utcMillis) low = middle;
      else high = middle - 1;
    }
    return steps[low]!.aheadMillis;
  }

  /** Sets how far UTC is ahead after group time `groupMillis`, if that is more than before. Returns whether it is. */
  step(aheadMillis: number, groupMillis: number): boolean {
    if (aheadMillis <= this.aheadMillis) return false;
    const fromMillis = groupMillis + this.aheadMillis + 1;
    while (this.#isOver(groupMillis - KEPT_MILLIS)) this.#steps.shift();
    if (this.#steps.length === UTC_STEPS_MAX) this.#steps.pop();
    this.#steps.push({ fromMillis, aheadMillis });
    return true;
  }

  /** Did the second step happen before this group time? Then nothing reaches back to the first. */
  #isOver(groupMillis: number): boolean {
    const [first, second] = this.#steps;
    return second !== undefined && second.fromMillis - first!.aheadMillis <= groupMillis;
  }

  /** Replaces all steps by those of a snapshot, in order. */
  restore(steps: UtcStep[]): void {
    this.#steps = steps;
  }
}
