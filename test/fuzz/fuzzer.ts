/**
 * Inputs for one target, one after the other, from a seed: sound ones, those with a damaged structure, and above all mutations
 * of both and of whatever made the parser say something new.
 */
import fc from 'fast-check';
import { seeded } from '../raft/seeded.ts';
import type { RandomBelow } from '../../raft/core-state.ts';
import { execute } from './execute.ts';
import { mutate } from './mutate.ts';
import type { Outcome, Target } from './target.ts';

/** Made of a structure at a time. */
const MADE = 64;
/** So many mutations before others are made. */
const MUTATIONS_PER_MADE = 256;
/** Inputs that behaved differently; a new one takes the place of one at random. */
const KEPT_MAX = 512;
/** Beyond so many answers none counts as different: some parsers repeat what they were given. */
const OUTCOMES_MAX = 20_000;

type Begins = (target: Target, input: Buffer) => void;

export class Fuzzer {
  readonly target: Target;
  executions = 0;
  /** Of these, how many the parser read. */
  read = 0;
  readonly #below: RandomBelow;
  readonly #outcomes = new Set<string>();
  readonly #kept: Buffer[] = [];
  #made: Buffer[] = [];
  #mutationsLeft = 0;

  readonly #begins: Begins;

  /** @param begins told of every input before it is tried */
  constructor(target: Target, seed: number, begins: Begins = () => {}) {
    this.target = target;
    this.#begins = begins;
    this.#below = seeded(seed);
  }

  /** How many answers of different kinds there were. */
  get outcomes(): number {
    return this.#outcomes.size;
  }

  /** @throws Finding */
  async run(executions: number): Promise<void> {
    for (let i = 0; i < executions; i += 1) {
      const input = this.#next();
      this.#begins(this.target, input);
      const outcome = await execute(this.target, input);
      this.executions += 1;
      if (outcome.startsWith('read')) this.read += 1;
      this.#keepIfNew(input, outcome);
    }
  }

  #next(): Buffer {
    if (this.#mutationsLeft === 0) this.#make();
    this.#mutationsLeft -= 1;
    const below = this.#below;
    const isOld = this.#kept.length > 0 && below(2) === 0;
    const input = oneOf(below, isOld ? this.#kept : this.#made);
    // Some as they were made.
    if (below(MUTATIONS_PER_MADE) === 0) return input;
    const chance = { below, other: oneOf(below, this.#made), words: this.target.words ?? [] };
    return mutate(input, chance, this.target.bytesMax);
  }

  #make(): void {
    const { sound, near = sound } = this.target;
    const seed = this.#below(2 ** 31);
    const sampled = fc.sample(fc.oneof(sound, near), { seed, numRuns: MADE });
    this.#made = sampled.map((bytes) => Buffer.from(bytes));
    this.#mutationsLeft = MADE * MUTATIONS_PER_MADE;
  }

  #keepIfNew(input: Buffer, outcome: Outcome): void {
    // What is wrong, without where and by how much.
    const kind = outcome.replaceAll(/[\d"'].*/gs, '').slice(0, 100);
    if (this.#outcomes.size >= OUTCOMES_MAX || this.#outcomes.has(kind)) return;
    this.#outcomes.add(kind);
    if (this.#kept.length < KEPT_MAX) this.#kept.push(input);
    else this.#kept[this.#below(KEPT_MAX)] = input;
  }
}

function oneOf<T>(below: RandomBelow, from: readonly T[]): T {
  return from[below(from.length)]!;
}
