/**
 * Figures about the answers of the last minutes, for alerts: denials, answers without a decision, and answer times.
 * Memory is fixed.
 */
import { LATE, quantileMillis, stepOf, TIME_STEPS } from './answer-times.ts';

/** The figures cover this many minutes, including the current one. */
export const RECENT_MINUTES = 5;

const NOTHING = { allowed: 0, denied: 0, unavailable: 0, letThrough: 0, heldBack: 0, lostCost: 0 };

interface Minute {
  minute: number;
  allowed: number;
  denied: number;
  unavailable: number;
  /** Let through by a fail mode. */
  letThrough: number;
  /** Denied by a fail mode. */
  heldBack: number;
  /** The cost that requests without a decision may have been charged nevertheless. */
  lostCost: number;
  /** Sampled answer times, by step. */
  readonly times: Uint32Array;
}

/** The figures, for metrics and the dashboard. */
export interface AlertFigures {
  /** Denials divided by decisions, 0 to 1. */
  readonly limitHitRatio: number;
  /** 99th percentile of answer times in seconds, too high by a fifth at most. 0 if nothing was timed. */
  readonly p99Seconds: number;
  /** Decisions divided by requests, 0 to 1; 1 without requests. A decision by fail mode does not count. */
  readonly availability: number;
  /**
   * Upper bound of the fraction of requests that were blocked although their limit had room, 0 to 1. It counts the
   * requests without a decision that were not let through, plus one for each unit of cost that these may have been
   * charged for nothing.
   */
  readonly wrongDenialRatioMax: number;
}

/** The recent figures of one node. */
export class RecentFigures {
  readonly #ring: readonly Minute[] = Array.from({ length: RECENT_MINUTES }, () => emptyMinute());
  /** Answer times since the node started, by step. */
  readonly #times = new Float64Array(TIME_STEPS);
  #now: Minute;

  constructor() {
    this.#now = this.#ring[0] ?? emptyMinute();
  }

  /** Sets the current minute, counted since 1970. */
  turnTo(minute: number): void {
    if (minute === this.#now.minute) return;
    this.#now = this.#ring[minute % RECENT_MINUTES] ?? this.#now;
    if (this.#now.minute !== minute) clear(this.#now, minute);
  }

  /** Counts a decision. */
  decided(isAllowed: boolean): void {
    if (isAllowed) this.#now.allowed += 1;
    else this.#now.denied += 1;
  }

  /** Counts a request without a decision. @param lostCost what it may have been charged nevertheless */
  undecided(lostCost: number): void {
    this.#now.unavailable += 1;
    this.#now.lostCost += lostCost;
  }

  /** Counts requests that were refused before they were read. */
  unread(requests: number): void {
    this.#now.unavailable += requests;
  }

  /** Counts a decision by fail mode. */
  degraded(isAllowed: boolean): void {
    if (isAllowed) this.#now.letThrough += 1;
    else this.#now.heldBack += 1;
  }

  /** Counts an answer time. All answers are counted, or a sample. */
  took(millis: number): void {
    const at = stepOf(millis);
    this.#now.times[at] = (this.#now.times[at] ?? 0) + 1;
    this.#times[at] = (this.#times[at] ?? 0) + 1;
  }

  /**
   * A copy of the answer times since the node started, by step. The difference of two copies can be given to
   * `quantileMillis`.
   */
  get times(): Float64Array {
    return this.#times.slice();
  }

  /** The figures of the last `RECENT_MINUTES`. */
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
