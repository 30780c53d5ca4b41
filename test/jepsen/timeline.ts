/** The virtual time of a random history and all its randomness, from one seed. */
import type { RandomBelow } from '../../raft/core-state.ts';
import { seeded } from '../raft/seeded.ts';

const NANOS_PER_MILLI = 1e6;
const START_MILLIS = 5_000;

export class Timeline {
  readonly random: RandomBelow;
  #nowMillis = START_MILLIS;
  #events: { readonly atMillis: number; readonly run: () => void }[] = [];

  constructor(seed: number) {
    this.random = seeded(seed);
  }

  get nowMillis(): number {
    return this.#nowMillis;
  }

  nanosAt(millis: number): number {
    return Math.round(millis * NANOS_PER_MILLI);
  }

  get nowNanos(): number {
    return this.nanosAt(this.#nowMillis);
  }

  later(millis: number, run: () => void): void {
    this.#events.push({ atMillis: this.#nowMillis + millis, run });
  }

  /** A duration below `bound`, in steps of a microsecond. */
  millisBelow(bound: number): number {
    return this.random(bound * 1_000) / 1_000;
  }

  chance(percent: number): boolean {
    return this.random(100) < percent;
  }

  /** Runs until no event is left. */
  run(): void {
    for (;;) {
      this.#events.sort((a, b) => a.atMillis - b.atMillis);
      const event = this.#events.shift();
      if (event === undefined) return;
      this.#nowMillis = event.atMillis;
      event.run();
    }
  }
}
