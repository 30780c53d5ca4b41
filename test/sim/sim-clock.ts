/**
 * The monotonic clock of a simulated machine: it starts again with each process, runs a little fast or slow, and may
 * become wrong. It never jumps. It records how it ran, so that the checks know what the nodes have to find out.
 */
import type { Random } from './random.ts';

interface Stretch {
  readonly fromMillis: number;
  readonly rate: number;
  readonly isWrong: boolean;
}

export interface SimClockInit {
  readonly now: () => number;
  readonly random: Random;
  /** Rates are drawn within these bounds, in parts per million from that of real time. */
  readonly driftPpm: readonly [min: number, max: number];
}

export class SimClock {
  readonly #init: SimClockInit;
  #readingMillis = 0;
  #drawnRate = 1;
  #wrongness = 1;
  #sameSinceMillis: number;
  /** The stretches of its rate, oldest first; the last one is current. */
  readonly #stretches: Stretch[];

  constructor(init: SimClockInit) {
    this.#init = init;
    this.#sameSinceMillis = init.now();
    this.#stretches = [{ fromMillis: init.now(), rate: 1, isWrong: false }];
  }

  get rate(): number {
    return this.#drawnRate * this.#wrongness;
  }

  /** As a multiple of the right rate; 1 while it is right. */
  get wrongness(): number {
    return this.#wrongness;
  }

  /** Since when it has been as wrong as it is, or right. */
  get sameSinceMillis(): number {
    return this.#sameSinceMillis;
  }

  millis(): number {
    const { fromMillis, rate } = this.#current;
    return this.#readingMillis + (this.#init.now() - fromMillis) * rate;
  }

  get #current(): Stretch {
    const stretch = this.#stretches.at(-1);
    if (stretch === undefined) throw new RangeError('a clock has always run somehow');
    return stretch;
  }

  /** The machine starts, with a quartz at another temperature. */
  restart(): void {
    const { random, driftPpm } = this.#init;
    const [min, max] = driftPpm;
    this.#drawnRate = 1 + (min + random.unit() * (max - min)) / 1e6;
    this.#runsOn(random.below(1_000_000));
  }

  /** Continues from its current value, at another rate. */
  goWrong(wrongness: number): void {
    if (wrongness === this.#wrongness) return;
    const reading = this.millis();
    this.#wrongness = wrongness;
    this.#sameSinceMillis = this.#init.now();
    this.#runsOn(reading);
  }

  #runsOn(readingMillis: number): void {
    this.#readingMillis = readingMillis;
    const { rate } = this;
    this.#stretches.push({ fromMillis: this.#init.now(), rate, isWrong: this.#wrongness !== 1 });
  }

  wasWrongSince(fromMillis: number): boolean {
    return this.#stretches.some(
      ({ isWrong }, i) => isWrong && (this.#stretches[i + 1]?.fromMillis ?? Infinity) > fromMillis,
    );
  }

  /** How much it gained on a clock of this rate between two moments, while it was faster. */
  gainedBetween(fromMillis: number, toMillis: number, rate: number): number {
    let gained = 0;
    for (const [i, stretch] of this.#stretches.entries()) {
      const begin = Math.max(fromMillis, stretch.fromMillis);
      const end = Math.min(toMillis, this.#stretches[i + 1]?.fromMillis ?? toMillis);
      if (end > begin && stretch.rate > rate) gained += (end - begin) * (stretch.rate - rate);
    }
    return gained;
  }
}

/** The UTC of a machine: real time plus an offset. */
export class SimWallClock {
  offsetMillis = 0;
  /** The largest offset so far. */
  offsetMaxMillis = 0;

  move(byMillis: number): void {
    this.offsetMillis += byMillis;
    this.offsetMaxMillis = Math.max(this.offsetMaxMillis, this.offsetMillis);
  }
}
