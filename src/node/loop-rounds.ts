/**
 * How much the rounds of this process's event loop have to do: what comes in one waits for the next. Rounds that take long are
 * counted in processor time, so that a process that others keep from running does not take itself for busy. It decides nothing.
 */

export interface LoopRoundsInit {
  readonly monotonicMillis: () => number;
  /**
   * Told of some rounds together: what one of them took, and how long the loop waited in all of them. Up to `shortMillis` it is
   * what passed while the loop did not wait; above, processor time, as soon as that is known.
   */
  readonly rounds: (busyMillisPerRound: number, idleMillis: number) => void;
  /** No round that takes less is a long one, whoever has the processor. */
  readonly shortMillis: number;
  /** Processor time of this process since it began; default: what the system says. */
  readonly processorMillis?: () => number;
  /** How long the event loop has waited since it began; default: what Node.js says. */
  readonly idleMillis?: () => number;
}

const WINDOW_MILLIS = 40;

export class LoopRounds {
  readonly #init: LoopRoundsInit;
  readonly #processorMillis: () => number;
  readonly #idleMillis: () => number;
  /** Of the rounds that nobody was told of yet. */
  #count = 0;
  #sinceMillis: number;
  /** At the beginning of these rounds; undefined: nobody asked then. */
  #processorBefore: number | undefined;
  #idleBefore: number;

  constructor(init: LoopRoundsInit) {
    this.#init = init;
    this.#processorMillis = init.processorMillis ?? processorMillisOfProcess;
    this.#idleMillis = init.idleMillis ?? idleMillisOfLoop;
    this.#sinceMillis = init.monotonicMillis();
    this.#idleBefore = this.#idleMillis();
  }

  /** To be called once in each round in which anything was done. */
  turn(): void {
    this.#count += 1;
    const now = this.#init.monotonicMillis();
    if (now - this.#sinceMillis < WINDOW_MILLIS) return;
    const idle = this.#idleMillis();
    const waited = idle - this.#idleBefore;
    const passed = (now - this.#sinceMillis - waited) / this.#count;
    this.#init.rounds(this.#roundMillis(passed), waited);
    this.#count = 0;
    this.#sinceMillis = now;
    this.#idleBefore = idle;
  }

  /** To ask takes the system a good part of a millisecond: only who has to know asks. */
  #roundMillis(passedMillis: number): number {
    const { shortMillis } = this.#init;
    if (passedMillis <= shortMillis) {
      this.#processorBefore = undefined;
      return passedMillis;
    }
    const now = this.#processorMillis();
    const before = this.#processorBefore;
    this.#processorBefore = now;
    return before === undefined ? shortMillis : (now - before) / this.#count;
  }
}

/** Of all its threads: those that write and collect garbage take little beside the loop. */
function processorMillisOfProcess(): number {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1_000;
}

function idleMillisOfLoop(): number {
  return performance.eventLoopUtilization().idle;
}
