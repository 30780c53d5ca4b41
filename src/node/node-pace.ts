/** Figures about the current work of this node, for monitoring: answer times, disk times, and memory. */
import { LatestTimes, stepOf, TIME_STEPS, timesOf } from '../usage/answer-times.ts';
import type { Pace } from '../wire/node-report.ts';
import type { ListenerUsage } from './listener-usage.ts';
import type { NodeCore } from './node-core.ts';

/** Time between two readings; reports may come more often. */
const READING_MILLIS = 1_000;
/** Readings that are compared are at most this far apart. */
const SECONDS = 10;

/** The current figures of one node. */
export class NodePace {
  readonly #usage: Pick<ListenerUsage, 'times'>;
  readonly #monotonicMillis: () => number;
  readonly #answers = new LatestTimes();
  readonly #writes = new LatestTimes();
  /** Write times since the node started, by step. */
  readonly #written = new Float64Array(TIME_STEPS);
  #read: { readonly times: readonly number[]; readonly writes: readonly number[] } | undefined;
  #readMillis = Number.NEGATIVE_INFINITY;

  constructor(usage: Pick<ListenerUsage, 'times'>, monotonicMillis: () => number) {
    this.#usage = usage;
    this.#monotonicMillis = monotonicMillis;
  }

  /** Records the time of a synced write. */
  wrote(seconds: number): void {
    const step = stepOf(1_000 * seconds);
    this.#written[step] = (this.#written[step] ?? 0) + 1;
  }

  /** The figures now. */
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

/** The lower median; null for an empty list. */
function median(values: readonly number[]): number | null {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.floor((sorted.length - 1) / 2)] ?? null;
}
