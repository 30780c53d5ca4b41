/**
 * Measures how much work each round (pass) of this process's event loop has: a request that arrives in one waits for
 * the next. Long rounds are measured in processor time, so that a process that others keep from running does not
 * count as busy.
 */
import type { MonotonicClock } from '../api/clocks.ts';

/** What `LoopRounds` needs. */
export interface LoopRoundsInit extends MonotonicClock {
  /**
   * Called for several rounds together: time per round, and time that the loop waited in all of them. Up to
   * `shortMillis` it is the time that passed while the loop did not wait; above, it is processor time, once that is
   * known.
   */
  readonly rounds: (busyMillisPerRound: number, idleMillis: number) => void;
  /** Rounds shorter than this count as short, without asking for processor time. */
  readonly shortMillis: number;
  /** Processor time of this process in milliseconds. Default: from the system. */
  readonly processorMillis?: () => number;
  /** Time that the event loop has waited, in milliseconds. Default: from Node.js. */
  readonly idleMillis?: () => number;
}

const WINDOW_MILLIS = 40;
/** How often processor time is read while rounds are long: reading it takes up to two milliseconds. */
const ASK_MILLIS = 160;

/** The measurement of one process. */
export class LoopRounds {
  readonly #init: LoopRoundsInit;
  readonly #processorMillis: () => number;
  readonly #idleMillis: () => number;
  /** Rounds since the last call of `rounds`. */
  #count = 0;
  #sinceMillis: number;
  /** The last reading of processor time; undefined: none since rounds became long. */
  #asked: { readonly atMillis: number; readonly processorMillis: number } | undefined;
  /** Time since that reading in which the loop did not wait. */
  #passedMillis = 0;
  /**
   * Fraction of that time in which the process had a processor, at the last reading; above 1 with several threads.
   */
  #fraction: number | undefined;
  #idleBefore: number;

  constructor(init: LoopRoundsInit) {
    this.#init = init;
    this.#processorMillis = init.processorMillis ?? processorMillisOfProcess;
    this.#idleMillis = init.idleMillis ?? idleMillisOfLoop;
    this.#sinceMillis = init.monotonicMillis();
    this.#idleBefore = this.#idleMillis();
  }

  /** Call once in each round that has done anything. */
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

  /** @param passed time in which the loop did not wait, in all of these rounds */
  #roundMillis(now: number, passed: number): number {
    const { shortMillis } = this.#init;
    if (passed <= shortMillis * this.#count) {
      this.#asked = undefined;
      this.#fraction = undefined;
      return passed / this.#count;
    }
    this.#passedMillis += passed;
    if (this.#fraction === undefined || now - (this.#asked?.atMillis ?? -Infinity) >= ASK_MILLIS)
      this.#ask(now);
    return this.#fraction === undefined ? shortMillis : (passed * this.#fraction) / this.#count;
  }

  #ask(atMillis: number): void {
    const processorMillis = this.#processorMillis();
    if (this.#asked !== undefined)
      this.#fraction = (processorMillis - this.#asked.processorMillis) / this.#passedMillis;
    this.#asked = { atMillis, processorMillis };
    this.#passedMillis = 0;
  }
}

/** All threads of the process: those for writes and garbage collection take little compared to the loop. */
function processorMillisOfProcess(): number {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1_000;
}

function idleMillisOfLoop(): number {
  return performance.eventLoopUtilization().idle;
}
