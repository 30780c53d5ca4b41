/**
 * How the answers of the last minutes were, for alerts: how many were denials, how many no decision at all, and how long they
 * took. Memory is fixed. It reads no clock.
 */
import { LATE, quantileMillis, stepOf, TIME_STEPS } from './time-steps.ts';

/** The minute under way and those before it that the figures cover. */
export const RECENT_MINUTES = 5;

const NOTHING = { allowed: 0, denied: 0, unavailable: 0, letThrough: 0, heldBack: 0, lostCost: 0 };

interface Minute {
  minute: number;
  allowed: number;
  denied: number;
  unavailable: number;
  /** Decided by fail modes. */
  letThrough: number;
  heldBack: number;
  /** What requests without a decision may have cost all the same. */
  lostCost: number;
  /** By step: times that were sampled. */
  readonly times: Uint32Array;
}

export interface AlertFigures {
  /** Denials of all decisions, 0 to 1. */
  readonly limitHitRatio: number;
  /** 99 of 100 answers took no longer; at most a fifth too long. 0 while there is none. */
  readonly p99Seconds: number;
  /** Decisions of all requests, 0 to 1; 1 while there is none. What fail modes decide is none. */
  readonly availability: number;
  /**
   * Of all requests, at most so many were blocked although their limit had room, 0 to 1: those without a decision that were not let through, and as many
   * as have the cost that these may have been charged with and that nobody used.
   */
  readonly wrongDenialRatioMax: number;
}

export class RecentFigures {
  readonly #ring: readonly Minute[] = Array.from({ length: RECENT_MINUTES }, () => emptyMinute());
  /** Since the beginning, by step. */
  readonly #times = new Float64Array(TIME_STEPS);
  #now: Minute;

  constructor() {
    this.#now = this.#ring[0] ?? emptyMinute();
  }

  /** What is told from now on happened in this minute, since 1970. */
  turnTo(minute: number): void {
    if (minute === this.#now.minute) return;
    this.#now = this.#ring[minute % RECENT_MINUTES] ?? this.#now;
    if (this.#now.minute !== minute) clear(this.#now, minute);
  }

  decided(isAllowed: boolean): void {
    if (isAllowed) this.#now.allowed += 1;
    else this.#now.denied += 1;
  }

  /** @param lostCost what may have been charged although nothing was granted */
  undecided(lostCost: number): void {
    this.#now.unavailable += 1;
    this.#now.lostCost += lostCost;
  }

  /** So many requests were refused before anybody read them. */
  unread(requests: number): void {
    this.#now.unavailable += requests;
  }

  /** Nobody could decide, and a fail mode did. */
  degraded(isAllowed: boolean): void {
    if (isAllowed) this.#now.letThrough += 1;
    else this.#now.heldBack += 1;
  }

  /** How long an answer took, of all or of a sample. */
  took(millis: number): void {
    const at = stepOf(millis);
    this.#now.times[at] = (this.#now.times[at] ?? 0) + 1;
    this.#times[at] = (this.#times[at] ?? 0) + 1;
  }

  /** How many answers took how long since the beginning: a copy, for `quantileMillis` of what two of them differ by. */
  get times(): Float64Array {
    return this.#times.slice();
  }

  get figures(): AlertFigures {
    const { minute } = this.#now;
    const sum = emptyMinute();
    for (const each of this.#ring) {
      if (each.minute < 0 || each.minute > minute || each.minute <= minute - RECENT_MINUTES) continue;
      sum.allowed += each.allowed;
      sum.denied += each.denied;
      sum.unavailable += each.unavailable;
      sum.letThrough += each.letThrough;
      sum.heldBack += each.heldBack;
      sum.lostCost += each.lostCost;
      for (const [step, count] of each.times.entries()) sum.times[step] = (sum.times[step] ?? 0) + count;
    }
    const decided = sum.allowed + sum.denied;
    const blocked = sum.unavailable + sum.heldBack;
    const all = decided + blocked + sum.letThrough;
    return {
      limitHitRatio: decided === 0 ? 0 : sum.denied / decided,
      p99Seconds: quantileMillis(sum.times, LATE) / 1_000,
      availability: all === 0 ? 1 : decided / all,
      wrongDenialRatioMax: all === 0 ? 0 : Math.min(1, (blocked + sum.lostCost) / all),
    };
  }
}

function emptyMinute(): Minute {
  return { minute: -1, ...NOTHING, times: new Uint32Array(TIME_STEPS) };
}

function clear(minute: Minute, now: number): void {
  Object.assign(minute, { minute: now, ...NOTHING });
  minute.times.fill(0);
}
