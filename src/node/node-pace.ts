/** How this node works just now, for those who watch the cluster: how long its answers and its disk took, and how full it is. */
import { LatestTimes, timesOf } from '../usage/latest-times.ts';
import { stepOf, TIME_STEPS } from '../usage/time-steps.ts';
import type { Pace } from '../wire/node-report.ts';
import type { DoorUsage } from './door-usage.ts';
import type { NodeCore } from './node-core.ts';

/** Between two readings; reports may come more often. */
const READING_MILLIS = 1_000;
/** What the readings that are compared are apart at most. */
const SECONDS = 10;

export class NodePace {
  readonly #usage: Pick<DoorUsage, 'times'>;
  readonly #monotonicMillis: () => number;
  readonly #answers = new LatestTimes();
  readonly #writes = new LatestTimes();
  /** Since the node started. */
  readonly #written = new Float64Array(TIME_STEPS);
  #read: { readonly times: readonly number[]; readonly writes: readonly number[] } | undefined;
  #readMillis = Number.NEGATIVE_INFINITY;

  constructor(usage: Pick<DoorUsage, 'times'>, monotonicMillis: () => number) {
    this.#usage = usage;
    this.#monotonicMillis = monotonicMillis;
  }

  /** The disk took so long for a synced write. */
  wrote(seconds: number): void {
    const step = stepOf(1_000 * seconds);
    this.#written[step] = (this.#written[step] ?? 0) + 1;
  }

  of({ clock, capacity }: Pick<NodeCore, 'clock' | 'capacity'>): Pace {
    const { times, writes } = this.#latest();
    const { stateBytes, stateBytesMax } = capacity;
    return {
      figures: {
        p99Millis: timesOf(times, SECONDS)?.p99Millis ?? null,
        diskP99Millis: timesOf(writes, SECONDS)?.p99Millis ?? null,
        clockPpm: median(clock.estimates().map(([, ppm]) => ppm)),
        stateBytes,
        stateBytesMax,
      },
      times,
    };
  }

  #latest(): { readonly times: readonly number[]; readonly writes: readonly number[] } {
    const now = this.#monotonicMillis();
    if (this.#read !== undefined && now - this.#readMillis < READING_MILLIS) return this.#read;
    this.#readMillis = now;
    this.#read = {
      times: this.#answers.grown(this.#usage.times, now),
      writes: this.#writes.grown(this.#written.slice(), now),
    };
    return this.#read;
  }
}

/** The lower of the two in the middle; null of none. */
function median(values: readonly number[]): number | null {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.floor((sorted.length - 1) / 2)] ?? null;
}
