/** The only source of randomness in a simulated run: everything is drawn from one seed. */
import { xoroshiro128plus } from 'pure-rand/generator/xoroshiro128plus';

const WORD = 2 ** 32;

export class Random {
  readonly #generator: { next(): number };

  constructor(seed: number) {
    this.#generator = xoroshiro128plus(seed);
    // Small seeds differ in few bits, which shows in the first words.
    for (let i = 0; i < 8; i += 1) this.#generator.next();
  }

  #word(): number {
    return this.#generator.next() >>> 0;
  }

  /** In [0, 1). */
  unit(): number {
    return this.#word() / WORD;
  }

  /** A whole number in [0, bound), bound up to 2^47. */
  below(bound: number): number {
    if (bound <= WORD) return Math.floor((this.#word() / WORD) * bound);
    return (this.#word() * 2 ** 15 + (this.#word() >>> 17)) % bound;
  }

  /** A whole number from `min` to `max`, both included. */
  between(min: number, max: number): number {
    return min + this.below(max - min + 1);
  }

  chance(probability: number): boolean {
    return this.unit() < probability;
  }

  /** Waiting times of independent events. */
  exponential(mean: number): number {
    return -Math.log(1 - this.unit()) * mean;
  }

  pick<T>(values: readonly T[]): T {
    if (values.length === 0) throw new RangeError('there is nothing to pick from');
    return values[this.below(values.length)] as T;
  }

  shuffled<T>(values: readonly T[]): T[] {
    const rest = [...values];
    const result: T[] = [];
    while (rest.length > 0) result.push(...rest.splice(this.below(rest.length), 1));
    return result;
  }

  /** A separate source, so that more draws in one place do not change the others. */
  fork(): Random {
    return new Random(this.#word());
  }
}
