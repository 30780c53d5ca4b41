/**
 * Decides when the leader of a quiet partition should forget idle items by a sweep; `Housekeeping` then requests a
 * place in the log. Grants sweep as well, but without grants the last keys would be remembered for good. It surveys the
 * state first, which wakes nobody: a partition without idle keys goes on resting. An instance exists only while this
 * node leads.
 */
import type { MonotonicClock } from '../api/clocks.ts';
import type { LimiterStateMachine } from '../limiter/state-machine.ts';
import type { IdleSurvey } from '../limiter/state/idle-survey.ts';

/**
 * How long no entry must have been applied before a survey. Until then grants sweep, and a survey would soon be
 * outdated.
 */
export const QUIET_MILLIS = 1_000;
/** The interval between sweeps. Each is an entry that every replica writes to its disk. */
export const IDLE_SWEEP_MILLIS = 250;
/** A sweep that is not applied within this time found no place in the log, or there is no quorum. */
const LOST_MILLIS = 5_000;
/**
 * Items that become idle within this time are forgotten together. Otherwise keys with long windows would wake a group
 * one by one.
 */
export const GATHER_MILLIS = 30_000;

/** The dependencies of `IdleSweeps`. */
export interface IdleSweepsInit extends MonotonicClock {
  readonly machine: LimiterStateMachine;
  readonly clock: { nowMillis(): number };
}

/** The sweeps of one partition. */
export class IdleSweeps {
  readonly #init: IdleSweepsInit;
  #survey: IdleSurvey | undefined;
  /** Something else was applied since the survey began. */
  #isChanged = false;
  /** Do nothing before this time of the node's monotonic clock. */
  #pausesUntilMillis: number;
  /** Before this group time no sweep is worthwhile, unless something else is applied. */
  #restsUntilMillis = -Infinity;
  /** How many items the survey found that sweeps have yet to forget; 0 if a survey is needed. */
  #due = 0;
  /** How many sweeps may follow before the next survey. */
  #sweepsLeft = 0;
  /** How many items the sweeps since the last survey forgot. */
  #forgotten = 0;

  constructor(init: IdleSweepsInit) {
    this.#init = init;
    this.#pausesUntilMillis = init.monotonicMillis() + QUIET_MILLIS;
  }

  /** An entry other than a sweep was applied. */
  changed(): void {
    this.#isChanged = true;
    this.#due = 0;
    this.#restsUntilMillis = -Infinity;
    this.#pausesUntilMillis = this.#init.monotonicMillis() + QUIET_MILLIS;
  }

  /** The whole state was replaced. */
  replaced(): void {
    this.#survey = undefined;
    this.changed();
  }

  /** A sweep was applied and forgot `count` items. */
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

  /** Called regularly. Should a sweep be proposed? Until it is applied, the answer is true only every few seconds. */
  isDue(): boolean {
    if (this.#due === 0 || this.#isPausing) return false;
    this.#pausesUntilMillis = this.#init.monotonicMillis() + LOST_MILLIS;
    return true;
  }

  get #isPausing(): boolean {
    return this.#init.monotonicMillis() < this.#pausesUntilMillis;
  }

  /** Continues the survey if it is worthwhile. Returns how many items it visited, at most `visitsMax`. */
  check(visitsMax: number): number {
    const { machine, clock } = this.#init;
    if (this.#due > 0 || machine.stateBytes === 0 || this.#isPausing) return 0;
    const nowMillis = clock.nowMillis();
    if (this.#survey === undefined) {
      if (nowMillis < this.#restsUntilMillis) return 0;
      this.#survey = machine.survey();
      this.#isChanged = false;
    }
    const visits = this.#survey.check(visitsMax, nowMillis);
    if (this.#survey.isDone) this.#surveyed(this.#survey, nowMillis);
    return visits;
  }

  #surveyed({ dueCount, firstMillis, lastMillis }: IdleSurvey, nowMillis: number): void {
    this.#survey = undefined;
    const worthMillis =
      firstMillis === Infinity ? Infinity : Math.min(lastMillis, firstMillis + GATHER_MILLIS);
    // The survey may have missed what was applied meanwhile, so do another one.
    this.#restsUntilMillis = this.#isChanged ? -Infinity : worthMillis;
    if (worthMillis > nowMillis) return;
    this.#due = dueCount;
    this.#sweepsLeft = this.#init.machine.sweepsPerRound;
    this.#forgotten = 0;
  }
}
