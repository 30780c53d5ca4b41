/**
 * Arrival times: of each key the one time at which all that it was granted has flowed out, the theoretical arrival time of the
 * generic cell rate algorithm. No rate is remembered, so each request may bring its own: what was used by others carries over.
 */

import { capacityOf, type Rule } from '../../api/rule.ts';
import { ceilDiv, floorDiv } from './integers.ts';
import type { Demand, KeyRun } from './meter.ts';
import { NumberMeter } from './number-meter.ts';

/** Nanoseconds from the newest grant to the arrival time. */
const DEBT = 0;

const NANOS_PER_MILLI = 1_000_000;
/** The most that a key owes: beyond three times the longest `(maxBurst + 1) * interval` there is. */
const DEBT_NANOS_MAX = 2 ** 53 - NANOS_PER_MILLI;
/**
 * A stamp is a whole millisecond rounded down: the request came less than one later, and counts as having come as late as that may
 * be. Else whoever has to wait for part of a millisecond would wait for all of it, at every interval.
 */
const LATENESS_NANOS = NANOS_PER_MILLI - 1;

/**
 * A cost of 1 moves the arrival time on by an interval, the window divided by `limit`, in nanoseconds rounded up. It fits if the
 * arrival time is then at most `burst` intervals ahead. The longest window is 2^32 ms: an interval is below 2^53 ns.
 *
 * **Guarantee.** In any interval of `e` milliseconds, in the time that requests are judged at, at most
 * `burst + limit * (e + 1) / windowMillis` is granted, rounded down, where the window is one millisecond longer than the demand's, for
 * `LATENESS_NANOS`. So in real time it is at most `burst - 1 + limit` in any half-open window, and in any longer interval
 * at most `burst - 1` and what flows out in it; in a shorter one less than what flows out in two milliseconds comes on top. This holds for a
 * key that is always asked by the same numbers. Whoever asks by others finds the arrival time where it is.
 *
 * **A refund** moves the arrival time back by the cost in intervals of the grant, less all the time since then, as time that passes may have been
 * all that flowed out: it is never before where it would be without the grant. So all of it while nothing was granted later.
 *
 * **It rounds a wait down** to whole milliseconds, and who comes then fits, by the same lateness.
 *
 * **Bytes per key.** A row of eight words: none beyond `KEY_BYTES`.
 */
export class ArrivalTimes extends NumberMeter {
  constructor() {
    super([{ name: 'debt', min: 0, max: Number.MAX_SAFE_INTEGER }]);
  }

  /** With the part of the capacity that no debt can hold, which only a key with a limit of its own may have. */
  liveCost(slot: number, demand: Demand): number {
    const interval = intervalNanos(demand);
    const late = Math.max(0, this.#debtAt(slot, demand.t) - LATENESS_NANOS);
    const beyond = Math.max(0, capacityOf(demand.rule) - floorDiv(DEBT_NANOS_MAX, interval));
    return ceilDiv(late, interval) + beyond;
  }

  millisUntilAvailable(slot: number, demand: Demand, cost: number): number {
    const { rule, t } = demand;
    const interval = intervalNanos(demand);
    const room = Math.min(capacityOf(rule), floorDiv(DEBT_NANOS_MAX, interval)) - cost;
    if (room < 0) return Infinity;
    return floorDiv(Math.max(0, this.#debtAt(slot, t) - room * interval), NANOS_PER_MILLI);
  }

  millisUntilEmpty(slot: number, { t }: Demand): number {
    return floorDiv(this.#debtAt(slot, t), NANOS_PER_MILLI);
  }

  /** At the arrival time, by whatever rule. */
  idleAtMillis(slot: number): number {
    return this.newestMillis(slot) + ceilDiv(this.numbers.number(slot, DEBT), NANOS_PER_MILLI);
  }

  grant(slot: number, demand: Demand): void {
    const { t, cost } = demand;
    const debt = this.#debtAt(slot, t) + cost * intervalNanos(demand);
    this.numbers.setNumber(slot, DEBT, Math.min(Number.MAX_SAFE_INTEGER, debt));
    this.numbers.setNewestMillis(slot, t);
  }

  refund(slot: number, timeMillis: number, cost: number, rule: Rule): void {
    const elapsed = this.newestMillis(slot) - timeMillis;
    // By the window as it was stated: a wider one, in group time, made the debt larger.
    const nanos = cost * floorDiv(rule.windowMillis * NANOS_PER_MILLI, Math.max(1, rule.limit));
    const debt = this.numbers.number(slot, DEBT);
    if (elapsed < 0 || elapsed * NANOS_PER_MILLI >= nanos) return;
    this.numbers.setNumber(slot, DEBT, Math.max(0, debt - (nanos - elapsed * NANOS_PER_MILLI)));
  }

  /** Its debt, in nanoseconds. */
  inspect(slot: number): readonly KeyRun[] {
    return [{ timeMillis: this.newestMillis(slot), cost: this.numbers.number(slot, DEBT) }];
  }

  #debtAt(slot: number, t: number): number {
    const debt = this.numbers.number(slot, DEBT);
    const elapsed = t - this.numbers.newestMillis(slot);
    return elapsed >= ceilDiv(debt, NANOS_PER_MILLI) ? 0 : debt - elapsed * NANOS_PER_MILLI;
  }
}

/** How far a cost of 1 moves the arrival time on. Under a limit of 0 what was granted before flows out as under a limit of 1. */
function intervalNanos({ rule, windowMillis }: Demand): number {
  return ceilDiv((windowMillis + 1) * NANOS_PER_MILLI, Math.max(1, rule.limit));
}
