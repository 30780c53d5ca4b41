/**
 * An operator says how much of some rules a key has used. What they remember of it is forgotten, under each meter that they had, and
 * the new cost recorded as granted now, all or nothing. It judges no request: what is recorded fits the limit by itself.
 */
import { capacityOf } from '../api/rule.ts';
import { ruleFor } from './state/customer-table.ts';
import type { KeyTable } from './state/key-table.ts';
import type { LimiterState } from './state/limiter-state.ts';
import { NONE } from './state/rows.ts';
import { KEY_BYTES } from './state/state-size.ts';
import type { Demand } from './meters/meter.ts';

/** Whose key it is has been looked up. */
export interface WantedUse {
  readonly ruleIds: readonly string[];
  readonly used: number;
}

export type SetOutcome =
  | { readonly kind: 'done' }
  | { readonly kind: 'unknown_rule'; readonly ruleId: string }
  | { readonly kind: 'at_capacity' }
  | { readonly kind: 'above'; readonly ruleId: string; readonly usedMax: number };

export function setUsed(state: LimiterState, { ruleIds, used }: WantedUse): SetOutcome {
  const { name, applied, customers, size, table } = state;
  const record = customers.find(name);
  const wanted: { readonly keys: KeyTable; readonly demand: Demand }[] = [];
  let bytes = 0;
  for (const ruleId of ruleIds) {
    const keys = state.tableOf(ruleId);
    if (keys === undefined) return { kind: 'unknown_rule', ruleId };
    const rule = ruleFor(record, keys.rule);
    const usedMax = capacityOf(rule);
    if (used > usedMax) return { kind: 'above', ruleId, usedMax };
    const { effectiveWindowMillis: windowMillis } = keys;
    const t = applied.timeMillis + keys.aheadMillis;
    const demand = { rule, t, cost: used, windowMillis, keptMillis: windowMillis };
    // A key that is known takes as much at least.
    if (keys.find(name) === NONE)
      bytes += KEY_BYTES + keys.nameBytes(name) + keys.meter.bytesToGrant(NONE, demand);
    wanted.push({ keys, demand });
  }
  if (!size.hasRoom(bytes, true, table?.partitionBytesMax ?? 0)) return { kind: 'at_capacity' };
  state.resetKey(({ rule }) => ruleIds.includes(rule.id));
  for (const { keys, demand } of wanted) keys.setUsed(demand, name, applied);
  return { kind: 'done' };
}
