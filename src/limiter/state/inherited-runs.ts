/** Records what a key that is new to a window inherits (see `inheritance.ts`), once, before its first grant there. */
import { assert } from '../assert.ts';
import { COST_SUM_MAX } from '../meters/log-runs.ts';
import { SlidingLogs } from '../meters/sliding-logs.ts';
import type { Demand, KeyRun } from '../meters/meter.ts';
import type { Inherited } from './inheritance.ts';
import type { KeyTable } from './key-table.ts';
import { NONE } from './rows.ts';
import { RUN_BYTES } from './state-size.ts';
import type { TextBytes } from './text-bytes.ts';

/** The runs that a key inherits; empty if the inherited cost counts as granted now. */
export function broughtBy({ runs, t, keptMillis }: Inherited): readonly KeyRun[] {
  return runs.flatMap(({ keys, slot, afterMillis, costAtOnce }) => {
    const isKept = costAtOnce > 0 && afterMillis > t - keptMillis;
    const atOnce = isKept ? [{ timeMillis: afterMillis, cost: costAtOnce }] : [];
    return [...atOnce, ...logOf(keys).runsAfter(slot, Math.max(afterMillis, t - keptMillis))];
  });
}

/** The bytes that a grant and its inheritance add to the size of the state, without those for a new key. */
export function bytesToInherit(inherited: Inherited, slot: number, demand: Demand): number {
  const { keys, runs } = inherited;
  if (runs.length === 0) {
    const { rule, t, windowMillis, keptMillis } = demand;
    const cost = inherited.cost + demand.cost;
    return keys.meter.bytesToGrant(slot, { rule, t, cost, windowMillis, keptMillis });
  }
  const horizonMillis = demand.t - demand.keptMillis;
  const before = slot === NONE ? 0 : logOf(keys).runCount(slot);
  let after = slot === NONE ? 0 : logOf(keys).countAfter(slot, horizonMillis);
  let newestMillis = -Infinity;
  let isEmptyBefore = slot !== NONE && logOf(keys).isNewestTakenBack(slot);
  // An upper bound: part of it is out by then.
  let costMax = demand.cost + (slot === NONE ? 0 : logOf(keys).recordedCost(slot));
  for (const { keys: others, slot: at, afterMillis, costAtOnce } of runs) {
    const log = logOf(others);
    if (costAtOnce > 0 && isEmptyBefore && afterMillis > horizonMillis) after += 1;
    after += log.countAfter(at, Math.max(afterMillis, horizonMillis));
    costMax += costAtOnce + log.recordedCost(at);
    newestMillis = log.newestSpentMillis(at);
    isEmptyBefore = log.isNewestTakenBack(at);
  }
  if (costMax > COST_SUM_MAX) return Infinity;
  return Math.max(0, after - before + (newestMillis === demand.t ? 0 : 1)) * RUN_BYTES;
}

/**
 * Records what a key inherits, before its first grant. Inherited cost is never refunded.
 *
 * @param brought the result of `broughtBy`, taken before anything else was recorded
 */
export function inherit(
  inherited: Inherited,
  brought: readonly KeyRun[],
  name: TextBytes,
  { timeMillis, index }: { readonly timeMillis: number; readonly index: number },
): void {
  const { keys } = inherited;
  const slot = inherited.slot === NONE ? keys.add(name, timeMillis, index) : inherited.slot;
  keys.watcher?.beforeChange(slot);
  keys.keys.setMadeMillis(slot, Math.max(timeMillis, keys.keys.madeMillisAt(slot)));
  if (brought.length === 0) keys.meter.grant(slot, inherited);
  for (const run of brought) logOf(keys).record(slot, run.timeMillis, run.cost, inherited.keptMillis);
}

/** The log of a table that is known to keep one. */
function logOf({ meter }: KeyTable): SlidingLogs {
  assert(meter instanceof SlidingLogs, 'runs are those of a log');
  return meter;
}
