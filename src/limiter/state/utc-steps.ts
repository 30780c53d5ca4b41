/**
 * By how much UTC is ahead of group time. Downtime of a whole group is not credited (raft/driver/group-clock.ts), so group time falls
 * behind with every outage. Entries say by how much, and fixed windows go by the sum: their days are days of UTC. Nothing else
 * does: whatever wall clocks say, sliding windows and buckets count in group time alone.
 */

import { TIMESTAMP_MILLIS_MAX } from '../../api/request.ts';
import { WINDOW_MILLIS_MAX } from '../../api/rule.ts';

/** As snapshots hold it. */
export interface UtcStep {
  /** The first millisecond of UTC that was not reached yet, as it was reckoned before. */
  readonly fromMillis: number;
  /** From then on UTC is so much ahead of group time. */
  readonly aheadMillis: number;
}

/** Wall clocks show no more, and what they show fits an integer together with group time. */
export const UTC_AHEAD_MILLIS_MAX = TIMESTAMP_MILLIS_MAX;
/** One more takes the place of the last: what was between them counts as before both. Clocks of 500 ppm take 43 a day. */
export const UTC_STEPS_MAX = 4_096;
/** No window reaches back so far. */
const KEPT_MILLIS = 2 * WINDOW_MILLIS_MAX;

export class UtcSteps {
  /** In order, both fields rise. The first one holds for all that was before it, too. */
  #steps: UtcStep[] = [{ fromMillis: 0, aheadMillis: 0 }];

  /** By how much UTC is ahead now. */
  get aheadMillis(): number {
    return this.#steps.at(-1)!.aheadMillis;
  }

  get all(): readonly UtcStep[] {
    return this.#steps;
  }

  /** What it was at this time of UTC. A time that was skipped, which only callers can name, counts as after the step. */
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

  /** After group time `groupMillis` UTC is so much ahead of it, if that is more than before. Returns whether it is. */
  step(aheadMillis: number, groupMillis: number): boolean {
    if (aheadMillis <= this.aheadMillis) return false;
    const fromMillis = groupMillis + this.aheadMillis + 1;
    while (this.#isOver(groupMillis - KEPT_MILLIS)) this.#steps.shift();
    if (this.#steps.length === UTC_STEPS_MAX) this.#steps.pop();
    this.#steps.push({ fromMillis, aheadMillis });
    return true;
  }

  /** Was the second step before this group time? Nothing reaches back to what was before it. */
  #isOver(groupMillis: number): boolean {
    const [first, second] = this.#steps;
    return second !== undefined && second.fromMillis - first!.aheadMillis <= groupMillis;
  }

  /** Those of a snapshot, in order: see `all`. */
  restore(steps: UtcStep[]): void {
    this.#steps = steps;
  }
}
