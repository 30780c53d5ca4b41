/**
 * When a leader asks the log to forget what is idle. Grants do that on their way; where none can be made for want of
 * room, or where nobody asks any more, nobody would. It proposes nothing itself.
 */

import type { Command } from '../limiter/log/command.ts';
import type { AppliedPosition } from '../limiter/decision.ts';
import type { LimiterStateMachine } from '../limiter/state-machine.ts';

/** Between two sweeps. Each is an entry that every replica writes to its disk. */
const SWEEP_MILLIS = 100;
/** After a round in which nothing was idle: windows and horizons have to pass. */
const REST_MILLIS = 5_000;

export class Housekeeping {
  #isDue = false;
  #nextMillis = -Infinity;
  /** Sweeps since the last one that freed something, or since the last rest. */
  #fruitless = 0;

  /** Room is wanted. Returns whether a sweep is to be proposed: also one that found no place in the log before. */
  want(nowMillis: number): boolean {
    if (nowMillis >= this.#nextMillis) this.#isDue = true;
    return this.#isDue;
  }

  /** Asked when there is a place in the log: is a sweep to take it? */
  take(nowMillis: number): boolean {
    if (!this.#isDue) return false;
    this.#isDue = false;
    this.#nextMillis = nowMillis + SWEEP_MILLIS;
    return true;
  }

  /** Applies a command, and learns from what a sweep frees: so many of them as `sweepsPerRound` come by everything there is. */
  apply(
    machine: LimiterStateMachine,
    command: Command,
    position: AppliedPosition,
    monotonicMillis: () => number,
  ): void {
    const before = machine.stateBytes;
    machine.apply(command, position);
    if (command.type !== 'sweep') return;
    const freedBytes = before - machine.stateBytes;
    this.#fruitless = freedBytes > 0 ? 0 : this.#fruitless + 1;
    if (this.#fruitless < machine.sweepsPerRound) return;
    this.#fruitless = 0;
    this.#nextMillis = monotonicMillis() + REST_MILLIS;
  }
}
