/**
 * An operator sets how much of some rules a key has used. The key's grants under these rules are forgotten, including
 * those of earlier meters, and the new cost is recorded as granted now. Either all rules change or none. No request is
 * judged here.
 */
import { capacityOf } from '../api/rule.ts';
import { ruleFor } from './state/customer-table.ts';
import type { KeyTable } from './state/key-table.ts';
import type { LimiterState } from './state/limiter-state.ts';
import { NONE } from './state/rows.ts';
import { KEY_BYTES } from './state/state-size.ts';
import type { Demand } from './meters/meter.ts';

/** What the operator wants. The key itself has been looked up in the state. */
export interface WantedUse {
  readonly ruleIds: readonly string[];
  readonly used: number;
}

/**
 * `above`: `used` exceeds what `ruleId` may grant at once, which is `usedMax`. Nothing has changed unless it is `done`.
 */
export type SetOutcome =
  | { readonly kind: 'done' }
  | { readonly kind: 'unknown_rule'; readonly ruleId: string }
  | { readonly kind: 'at_capacity' }
  | { readonly kind: 'above'; readonly ruleId: string; readonly usedMax: number };

/** Sets the usage of the key that was looked up last. */
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
    // A key that is known already takes at least as much room.
    if (keys.find(name) === NONE)
      bytes += KEY_BYTES + keys.nameBytes(name) + keys.meter.bytesToGrant(NONE, demand);
    wanted.push({ keys, demand });
  }
  if (!size.hasRoom(bytes, true, table?.partitionBytesMax ?? 0)) return { kind: 'at_capacity' };
  state.resetKey(({ rule }) => ruleIds.includes(rule.id));
  for (const { keys, demand } of wanted) keys.setUsed(demand, name, applied);
  return { kind: 'done' };
}
