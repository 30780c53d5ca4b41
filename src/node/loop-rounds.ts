/**
 * How much the rounds of this process's event loop have to do: what comes in one waits for the next. It counts processor time, so
 * that a process that others keep from running does not take itself for busy. It decides nothing.
 */

export interface LoopRoundsInit {
  /** Told of each round, in milliseconds. */
  readonly round: (busyMillis: number) => void;
  /** Processor time of this process since it began; default: what the system says. */
  readonly processorMillis?: () => number;
}

export class LoopRounds {
  readonly #round: (busyMillis: number) => void;
  readonly #processorMillis: () => number;
  #lastMillis: number;

  constructor({ round, processorMillis = processorMillisOfProcess }: LoopRoundsInit) {
    this.#round = round;
    this.#processorMillis = processorMillis;
    this.#lastMillis = processorMillis();
  }

  /** To be called once in each round in which anything was done. */
  turn(): void {
    const now = this.#processorMillis();
    this.#round(now - this.#lastMillis);
    this.#lastMillis = now;
  }
}

/** Of all its threads: those that write and collect garbage take little beside the loop. */
function processorMillisOfProcess(): number {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1_000;
}
