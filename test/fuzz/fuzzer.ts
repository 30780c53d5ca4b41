/**
 * Makes the inputs for one target from a seed: sound ones, ones with a damaged structure, and mostly mutations of both
 * and of inputs that made the parser give a new answer.
 */
import fc from 'fast-check';
import { seeded } from '../raft/seeded.ts';
import type { RandomBelow } from '../../raft/core-state.ts';
import { execute } from './execute.ts';
import { mutate } from './mutate.ts';
import type { Outcome, Target } from './target.ts';

/** Inputs made from structures at a time. */
const MADE = 64;
/** Mutations before new inputs are made. */
const MUTATIONS_PER_MADE = 256;
/** The maximum number of inputs with different answers that are kept. A new one replaces a random one. */
const KEPT_MAX = 512;
/** The maximum number of different answers. Some parsers repeat their input, so their answers never end. */
const OUTCOMES_MAX = 20_000;

type Begins = (target: Target, input: Buffer) => void;

export class Fuzzer {
  readonly target: Target;
  executions = 0;
  /** Inputs that the parser accepted. */
  read = 0;
  readonly #below: RandomBelow;
  readonly #outcomes = new Set<string>();
  readonly #kept: Buffer[] = [];
  #made: Buffer[] = [];
  #mutationsLeft = 0;

  readonly #begins: Begins;

  /** Runs some inputs. @param begins called with every input before it runs */
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
    // The kind of mistake, without positions and numbers.
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
