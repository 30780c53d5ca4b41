/**
 * When a leader that is asked little has the log forget what is idle. Grants do that on their way, so a partition without any would
 * remember its last keys for good. It looks at the state first, which wakes nobody: a partition whose keys are all live, or
 * that has none, goes on resting. It exists only while its node leads.
 */
import type { LimiterStateMachine } from '../limiter/state-machine.ts';
import type { IdleSurvey } from '../limiter/state/idle-survey.ts';

/** Without an entry for so long: until then grants sweep, and what is found is soon no longer so. */
export const QUIET_MILLIS = 1_000;
/** Between two sweeps. Each is an entry that every replica writes to its disk. */
export const IDLE_SWEEP_MILLIS = 250;
/** A sweep that was not applied by then found no place in the log, or there is no quorum. */
const LOST_MILLIS = 5_000;
/** What becomes idle within so long goes together: keys of long windows, one after the other, must not wake a group for each. */
export const GATHER_MILLIS = 30_000;

export interface IdleSweepsInit {
  readonly machine: LimiterStateMachine;
  readonly clock: { nowMillis(): number };
  readonly monotonicMillis: () => number;
}

export class IdleSweeps {
  readonly #init: IdleSweepsInit;
  #survey: IdleSurvey | undefined;
  /** Something else was applied since the survey began. */
  #isChanged = false;
  /** On this node's clock: until then it does nothing. */
  #pausesUntilMillis: number;
  /** In group time: before, nothing is worth a sweep, unless something else is applied. */
  #restsUntilMillis = -Infinity;
  /** What the survey found and sweeps have yet to forget; 0: the state is to be looked at. */
  #due = 0;
  /** Sweeps that may come before the next survey, and what those before them forgot. */
  #sweepsLeft = 0;
  #forgotten = 0;

  constructor(init: IdleSweepsInit) {
    this.#init = init;
    this.#pausesUntilMillis = init.monotonicMillis() + QUIET_MILLIS;
  }

  /** An entry was applied that is no sweep. */
  changed(): void {
    this.#isChanged = true;
    this.#due = 0;
    this.#restsUntilMillis = -Infinity;
    this.#pausesUntilMillis = this.#init.monotonicMillis() + QUIET_MILLIS;
  }

  /** The whole state is another one. */
  replaced(): void {
    this.#survey = undefined;
    this.changed();
  }

  /** A sweep was applied, and forgot so many things. */
  swept(count: number): void {
    if (this.#due === 0) return;
    const { clock, monotonicMillis } = this.#init;
    this.#pausesUntilMillis = monotonicMillis() + IDLE_SWEEP_MILLIS;
    this.#forgotten += count;
    this.#due = Math.max(0, this.#due - count);
    this.#sweepsLeft -= 1;
    if (this.#due > 0 && this.#sweepsLeft > 0) return;
    this.#due = 0;
    this.#restsUntilMillis = this.#forgotten > 0 ? -Infinity : clock.nowMillis() + GATHER_MILLIS;
  }

  /** Time passed. Is a sweep to be proposed? Until it is applied that is said every few seconds only. */
  isDue(): boolean {
    if (this.#due === 0 || this.#isPausing) return false;
    this.#pausesUntilMillis = this.#init.monotonicMillis() + LOST_MILLIS;
    return true;
  }

  get #isPausing(): boolean {
    return this.#init.monotonicMillis() < this.#pausesUntilMillis;
  }

  /** Goes on to look at the state, if that is worth it. Returns the number of things that it looked at, `looksMax` at most. */
  look(looksMax: number): number {
    const { machine, clock } = this.#init;
    if (this.#due > 0 || machine.stateBytes === 0 || this.#isPausing) return 0;
    const nowMillis = clock.nowMillis();
    if (this.#survey === undefined) {
      if (nowMillis < this.#restsUntilMillis) return 0;
      this.#survey = machine.survey();
      this.#isChanged = false;
    }
    const looks = this.#survey.look(looksMax, nowMillis);
    if (this.#survey.isDone) this.#surveyed(this.#survey, nowMillis);
    return looks;
  }

  #surveyed({ dueCount, firstMillis, lastMillis }: IdleSurvey, nowMillis: number): void {
    this.#survey = undefined;
    const worthMillis =
      firstMillis === Infinity ? Infinity : Math.min(lastMillis, firstMillis + GATHER_MILLIS);
    // What was applied meanwhile was perhaps not seen: the state is looked at once more.
    this.#restsUntilMillis = this.#isChanged ? -Infinity : worthMillis;
    if (worthMillis > nowMillis) return;
    this.#due = dueCount;
    this.#sweepsLeft = this.#init.machine.sweepsPerRound;
    this.#forgotten = 0;
  }
}
