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
/** While rounds are long, the system is asked for processor time so seldom: to answer takes it up to two milliseconds. */
const ASK_MILLIS = 160;

export class LoopRounds {
  readonly #init: LoopRoundsInit;
  readonly #processorMillis: () => number;
  readonly #idleMillis: () => number;
  /** Of the rounds that nobody was told of yet. */
  #count = 0;
  #sinceMillis: number;
  /** When the system was last asked, and what it said; undefined: not since rounds became long. */
  #asked: { readonly atMillis: number; readonly processorMillis: number } | undefined;
  /** How long the loop did not wait since. */
  #passedMillis = 0;
  /** How much of that time the process had a processor, when it was last asked; above 1: more than one. */
  #share: number | undefined;
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
    this.#init.rounds(this.#roundMillis(now, now - this.#sinceMillis - waited), waited);
    this.#count = 0;
    this.#sinceMillis = now;
    this.#idleBefore = idle;
  }

  /** @param passed while the loop did not wait, in all of these rounds */
  #roundMillis(now: number, passed: number): number {
    const { shortMillis } = this.#init;
    if (passed <= shortMillis * this.#count) {
      this.#asked = undefined;
      this.#share = undefined;
      return passed / this.#count;
    }
    this.#passedMillis += passed;
    if (this.#share === undefined || now - (this.#asked?.atMillis ?? -Infinity) >= ASK_MILLIS) this.#ask(now);
    return this.#share === undefined ? shortMillis : (passed * this.#share) / this.#count;
  }

  #ask(atMillis: number): void {
    const processorMillis = this.#processorMillis();
    if (this.#asked !== undefined)
      this.#share = (processorMillis - this.#asked.processorMillis) / this.#passedMillis;
    this.#asked = { atMillis, processorMillis };
    this.#passedMillis = 0;
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
