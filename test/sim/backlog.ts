/**
 * The input of a process that may be paused: requests that arrive meanwhile wait, and their age counts from their
 * arrival.
 */
import type { Random } from './random.ts';

export interface BacklogInit {
  /** Real time. */
  readonly now: () => number;
  /** By the clock of the machine. */
  readonly monotonicMillis: () => number;
  readonly random: Random;
  readonly tick: () => void;
}

/** The most requests that may come at one moment. Their arrival times differ by less than anything takes. */
const ARRIVALS_MAX = 65_536;
const ARRIVAL_MILLIS = 2 ** -24;

export class Backlog {
  readonly #init: BacklogInit;
  isPaused = false;
  /** Real time at which the last pause ended; during a pause, the future. */
  pausedAt = 0;
  #waiting: (() => void)[] = [];
  #tickIsLate = false;
  #arrivals = 0;
  #pausedMillis = 0;
  /** By the machine's clock: when it was paused, while it reads its backlog. */
  #drainedMillis: number | undefined;

  constructor(init: BacklogInit) {
    this.#init = init;
  }

  /** The arrival time of what it reads now. */
  get listenerMillis(): number {
    return (this.#drainedMillis ?? this.#init.monotonicMillis()) + this.#arrivals * ARRIVAL_MILLIS;
  }

  /**
   * It reads the next request. No other has the same arrival time, so an observer recognises its questions by their
   * deadline.
   */
  arrives(): number {
    this.#arrivals = (this.#arrivals + 1) % ARRIVALS_MAX;
    return this.listenerMillis;
  }

  run(step: () => void): void {
    if (this.isPaused) this.#waiting.push(step);
    else step();
  }

  tick(): void {
    if (!this.isPaused) this.#init.tick();
    // Timers of a stopped process fire once when it continues.
    else this.#tickIsLate = true;
  }

  pause(): void {
    if (!this.isPaused) this.#pausedMillis = this.#init.monotonicMillis();
    this.isPaused = true;
    this.pausedAt = Infinity;
  }

  /** `inProcess` runs a step if the process still lives after those before it. */
  resume(inProcess: (step: () => void) => void): void {
    if (!this.isPaused) return;
    this.isPaused = false;
    this.pausedAt = this.#init.now();
    const tickFirst = this.#init.random.chance(0.5);
    const isLate = this.#tickIsLate;
    this.#tickIsLate = false;
    if (isLate && tickFirst) this.#init.tick();
    this.#drainedMillis = this.#pausedMillis;
    for (const step of this.#waiting.splice(0)) inProcess(step);
    this.#drainedMillis = undefined;
    if (isLate && !tickFirst) this.#init.tick();
  }
}
