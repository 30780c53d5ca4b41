/**
 * The meter of throttles whose numbers come with each request: the generic cell rate algorithm (GCRA, ITU-T I.371). A
 * key remembers only its theoretical arrival time, when everything it was granted has drained. No rate is remembered,
 * so each request may bring its own.
 */

import { capacityOf, type Rule } from '../../api/rule.ts';
import { ceilDiv, floorDiv } from './integers.ts';
import type { Demand, KeyRun } from './meter.ts';
import { NumberMeter } from './number-meter.ts';

/** Nanoseconds from the newest grant to the arrival time. */
const DEBT = 0;

const NANOS_PER_MILLI = 1_000_000;
/** The largest debt of a key: more than three times the longest possible `(maxBurst + 1) * interval`. */
const DEBT_NANOS_MAX = 2 ** 53 - NANOS_PER_MILLI;
/**
 * A timestamp is rounded down to a whole millisecond, so the request really came up to that much later. It is treated
 * as having come as late as possible. Otherwise a request that has to wait part of a millisecond would wait a whole
 * one, at every interval.
 */
const LATENESS_NANOS = NANOS_PER_MILLI - 1;

/**
 * A cost of 1 moves the arrival time forward by one interval: the window divided by `limit`, in nanoseconds, rounded
 * up. It fits if the arrival time is then at most `burst` intervals ahead. The longest window is 2^32 ms, so an
 * interval is below 2^53 ns.
 *
 * **Guarantee.** In any interval of `e` milliseconds, in the time that requests are judged at, at most `burst + limit *
 * (e + 1) / windowMillis` is granted, rounded down. `windowMillis` is one millisecond longer than the demand's, to make
 * up for `LATENESS_NANOS`. So in real time it is at most `burst - 1 + limit` in any half-open window, and in any longer
 * interval at most `burst - 1` plus what drains in it; in a shorter one, less than what drains in two milliseconds is
 * added. This holds for a key whose requests all state the same numbers. A request with other numbers starts from the
 * arrival time it finds.
 *
 * **A refund** moves the arrival time back by the intervals of the refunded cost, less all the time since its grant,
 * because in that time the grant may already have drained. The result is never earlier than it would be without the
 * grant. So it gives back everything if nothing was granted later.
 *
 * **Waits are rounded down** to whole milliseconds. A request that comes then fits, thanks to the same lateness.
 *
 * **Bytes per key.** A row of eight words, included in `KEY_BYTES`.
 */
export class ArrivalTimes extends NumberMeter {
  constructor() {
    super([{ name: 'debt', min: 0, max: Number.MAX_SAFE_INTEGER }]);
  }

  /** Includes the part of the capacity that no debt can represent. Only a key with an override can have one. */
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

  /** At the arrival time; the rule does not matter. */
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
    // Uses the configured window. The widened one, in group time, made the debt larger.
    const nanos = cost * floorDiv(rule.windowMillis * NANOS_PER_MILLI, Math.max(1, rule.limit));
    const debt = this.numbers.number(slot, DEBT);
    if (elapsed < 0 || elapsed * NANOS_PER_MILLI >= nanos) return;
    this.numbers.setNumber(slot, DEBT, Math.max(0, debt - (nanos - elapsed * NANOS_PER_MILLI)));
  }

  /** The cost is the debt in nanoseconds. */
  inspect(slot: number): readonly KeyRun[] {
    return [{ timeMillis: this.newestMillis(slot), cost: this.numbers.number(slot, DEBT) }];
  }

  #debtAt(slot: number, t: number): number {
    const debt = this.numbers.number(slot, DEBT);
    const elapsed = t - this.numbers.newestMillis(slot);
    return elapsed >= ceilDiv(debt, NANOS_PER_MILLI) ? 0 : debt - elapsed * NANOS_PER_MILLI;
  }
}

/** How far a cost of 1 moves the arrival time. Under a limit of 0, older grants drain as under a limit of 1. */
function intervalNanos({ rule, windowMillis }: Demand): number {
  return ceilDiv((windowMillis + 1) * NANOS_PER_MILLI, Math.max(1, rule.limit));
}
