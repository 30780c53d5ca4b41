/**
 * A naive model of each meter, written as plainly as possible from the documentation: lists of grants, big integers,
 * the platform's calendar, and waits found by searching. It uses no code of the limiter.
 */

import type { Rule } from '../../src/api/rule.ts';

/** A question: the rule, the time and the window. */
export interface NaiveDemand {
  readonly rule: Rule;
  readonly t: number;
  readonly windowMillis: number;
  readonly keptMillis: number;
}

export interface NaiveMeter {
  readonly newestMillis: number;
  /** The spent cost, rounded as documented. */
  spent(demand: NaiveDemand): number;
  grant(demand: NaiveDemand, cost: number): void;
}

export function naiveCapacity({ limit, burst = limit, queue = 0 }: Rule): number {
  return limit === 0 ? 0 : burst + queue;
}

/** The longest wait that is reported. */
export const WAIT_MILLIS_MAX = 2 ** 48;

/**
 * The time after `t` from which at most `room` is spent, found by trying. Spent cost never rises by itself.
 *
 * @param guess tried first: it is the answer if it is long enough and one millisecond less is not
 */
export function naiveWait(meter: NaiveMeter, demand: NaiveDemand, room: number, guess = 0): number {
  if (room < 0) return Infinity;
  const isWithin = (wait: number): boolean => meter.spent({ ...demand, t: demand.t + wait }) <= room;
  if (isWithin(0)) return 0;
  const canBe = Number.isSafeInteger(guess) && guess > 0 && guess <= WAIT_MILLIS_MAX;
  if (canBe && !isWithin(guess - 1) && (guess === WAIT_MILLIS_MAX || isWithin(guess))) return guess;
  let enough = 1;
  while (!isWithin(enough)) {
    if (enough >= WAIT_MILLIS_MAX) return WAIT_MILLIS_MAX;
    enough *= 2;
  }
  let little = enough === 1 ? 0 : enough / 2;
  while (enough - little > 1) {
    const middle = Math.floor((little + enough) / 2);
    if (isWithin(middle)) enough = middle;
    else little = middle;
  }
  return enough;
}

export function naiveMeterOf(rule: Rule): NaiveMeter {
  switch (rule.meter ?? 'slidingLog') {
    case 'slidingLog':
      return new NaiveGranules();
    case 'slidingCounter':
      return new NaiveCounter();
    case 'fixedWindow':
      return new NaiveFixedWindow();
    case 'tokenBucket':
    case 'leakyBucket':
      return new NaiveBucket();
  }
}

interface Grant {
  readonly t: number;
  readonly cost: number;
}

function costOf(grants: readonly Grant[]): number {
  return grants.reduce((sum, { cost }) => sum + cost, 0);
}

/** A grant counts as made at the next multiple of the granularity. */
class NaiveGranules implements NaiveMeter {
  newestMillis = 0;
  #grants: Grant[] = [];

  spent({ t, windowMillis }: NaiveDemand): number {
    return costOf(this.#grants.filter((grant) => grant.t > t - windowMillis));
  }

  grant({ rule, t, keptMillis }: NaiveDemand, cost: number): void {
    const granule = BigInt(rule.granularityMillis ?? 1);
    const stamp = Number(((BigInt(t) + granule - 1n) / granule) * granule);
    const live = this.#grants.filter((grant) => grant.t > t - keptMillis);
    this.#grants = [...live, { t: Math.max(stamp, ...live.map((grant) => grant.t)), cost }];
    this.newestMillis = t;
  }
}

/** When a window began. Grants with the same begin are in one window. */
function windowOf({ windowMillis, calendar }: Rule, t: number): number {
  if (calendar !== 'month') return Math.floor(t / windowMillis);
  const date = new Date(t);
  return date.getUTCFullYear() * 12 + date.getUTCMonth();
}

class NaiveFixedWindow implements NaiveMeter {
  newestMillis = 0;
  #grants: Grant[] = [];

  spent({ rule, t }: NaiveDemand): number {
    return windowOf(rule, t) === windowOf(rule, this.newestMillis) ? costOf(this.#grants) : 0;
  }

  grant(demand: NaiveDemand, cost: number): void {
    const { rule, t } = demand;
    const isOver = windowOf(rule, t) !== windowOf(rule, this.newestMillis);
    this.#grants = [...(isOver ? [] : this.#grants), { t, cost }];
    this.newestMillis = t;
  }
}

class NaiveCounter implements NaiveMeter {
  newestMillis = 0;
  #windowMillis = 0;
  #grants: Grant[] = [];

  spent({ rule, t }: NaiveDemand): number {
    return spentOf(this.#seenWith(rule.windowMillis), rule.windowMillis, t);
  }

  grant({ rule, t }: NaiveDemand, cost: number): void {
    this.#grants = [...this.#seenWith(rule.windowMillis), { t, cost }];
    this.#windowMillis = rule.windowMillis;
    this.newestMillis = t;
  }

  /** After a change of the window, the cost spent at the newest grant counts as granted then. */
  #seenWith(windowMillis: number): readonly Grant[] {
    const before = this.#windowMillis;
    if (windowMillis === before || before === 0) return this.#grants;
    const { newestMillis: t } = this;
    return [{ t, cost: spentOf(this.#grants, before, t) }];
  }
}

/** The cost in this aligned window, plus the fraction of the previous window that a rolling window covers. */
function spentOf(grants: readonly Grant[], windowMillis: number, t: number): number {
  const inWindow = (windowsAgo: number): bigint =>
    BigInt(
      costOf(
        grants.filter(
          (grant) => Math.floor(grant.t / windowMillis) === Math.floor(t / windowMillis) - windowsAgo,
        ),
      ),
    );
  const left = BigInt(windowMillis - (t % windowMillis));
  return Number(inWindow(0) + (inWindow(1) * left) / BigInt(windowMillis));
}

/** The level is a fraction of big integers: `#level / #parts` of a cost. */
class NaiveBucket implements NaiveMeter {
  newestMillis = 0;
  #level = 0n;
  #parts = 1n;

  spent(demand: NaiveDemand): number {
    const windowMillis = BigInt(demand.windowMillis);
    return Number((this.#levelIn(demand) + windowMillis - 1n) / windowMillis);
  }

  grant(demand: NaiveDemand, cost: number): void {
    this.#level = this.#levelIn(demand) + BigInt(cost) * BigInt(demand.windowMillis);
    this.#parts = BigInt(demand.windowMillis);
    this.newestMillis = demand.t;
  }

  /** The cost that drains in a millisecond, divided by the limit, is one part. Conversions round up. */
  #levelIn({ rule, t, windowMillis }: NaiveDemand): bigint {
    const carried = (this.#level * BigInt(windowMillis) + this.#parts - 1n) / this.#parts;
    const left = carried - BigInt(Math.max(1, rule.limit)) * BigInt(t - this.newestMillis);
    return left > 0n ? left : 0n;
  }
}
