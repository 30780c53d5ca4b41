/** A counter per key and aligned window: a quota that begins anew with each minute, day or month. */

import { FIXED_LIMIT_MAX, type Rule } from '../../api/rule.ts';
import { windowEnd, windowStart } from './aligned-window.ts';
import type { Demand, KeyRun } from './meter.ts';
import { NumberMeter } from './number-meter.ts';

/** What was granted in the window of the newest grant. */
const COUNT = 0;
/** The largest limit, and as much debt. */
const COUNT_MAX = 2 * FIXED_LIMIT_MAX;

/**
 * **Guarantee.** In each window that begins at a multiple of `windowMillis` since 1970, or with a month, in UTC and in the
 * time that requests are judged at, at most the limit is granted. Of two windows that touch, as much may be granted
 * around where they do: up to twice the limit within a moment. Windows are not widened for group time, so that they
 * stay aligned: in real time one may be shorter by what clocks differ (`clockDriftPpm`), and begin late by what group
 * time lags.
 *
 * **A refund** gives back all of a grant that was made in the window of the newest one; of any before, nothing counts. Within that window the time of
 * the key goes back to group time.
 *
 * **Bytes per key.** A row of eight words: none beyond `KEY_BYTES`, however much is granted.
 *
 * **After a change.** What was granted in the window of the newest grant counts as made at its time, in the window that the new
 * rule has there. If windows grew, what an earlier one held is forgotten: the window in which the rule changed may
 * hold up to what the old rule granted in it on top of the new limit, and every later one keeps to the limit.
 */
export class FixedWindows extends NumberMeter {
  constructor() {
    super([{ name: 'count', min: 0, max: COUNT_MAX }]);
  }

  liveCost(slot: number, { rule, t }: Demand): number {
    const isOver = this.rows.newestMillis(slot) < windowStart(rule, t);
    return isOver ? 0 : this.rows.number(slot, COUNT);
  }

  millisUntilAvailable(slot: number, demand: Demand, cost: number): number {
    const { rule, t } = demand;
    if (cost > rule.limit) return Infinity;
    return this.liveCost(slot, demand) + cost <= rule.limit ? 0 : windowEnd(rule, t) - t;
  }

  millisUntilEmpty(slot: number, demand: Demand): number {
    const { rule, t } = demand;
    return this.liveCost(slot, demand) === 0 ? 0 : windowEnd(rule, t) - t;
  }

  idleAtMillis(slot: number, _windowMillis: number, rule: Rule): number {
    return windowEnd(rule, this.newestMillis(slot));
  }

  grant(slot: number, demand: Demand): void {
    this.rows.setNumber(slot, COUNT, Math.min(COUNT_MAX, this.liveCost(slot, demand) + demand.cost));
    this.rows.setNewestMillis(slot, demand.t);
  }

  refund(slot: number, timeMillis: number, cost: number, rule: Rule, nowMillis: number): void {
    const newestMillis = this.newestMillis(slot);
    const startMillis = windowStart(rule, newestMillis);
    if (timeMillis < startMillis) return;
    this.rows.setNumber(slot, COUNT, Math.max(0, this.rows.number(slot, COUNT) - cost));
    if (nowMillis >= startMillis) this.rows.setNewestMillis(slot, Math.min(newestMillis, nowMillis));
  }

  inspect(slot: number): readonly KeyRun[] {
    return [{ timeMillis: this.newestMillis(slot), cost: this.rows.number(slot, COUNT) }];
  }
}
