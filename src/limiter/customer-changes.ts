/**
 * Applies the customer commands of operators (read, put, delete, block, reset, set), in the order of the log. Customer
 * records change nowhere else. No request is judged here.
 */

import type { CustomerRequest } from '../api/customer.ts';
import { type CustomerRecord, NO_RECORD } from '../api/customer-record.ts';
import { assert } from './assert.ts';
import type { Decision } from './decision.ts';
import { type DecidedAt, NOT_JUDGED, receiptAt, refusalOf } from './decisions-without-limit.ts';
import { recordAt, ruleFor, saysNothing } from './state/customer-table.ts';
import type { LimiterState } from './state/limiter-state.ts';
import { NONE } from './state/rows.ts';
import { capacityOf } from '../api/rule.ts';
import type { KeyTable } from './state/key-table.ts';
import { KEY_BYTES } from './state/state-size.ts';
import type { Demand } from './meters/meter.ts';

/** Applies the requests of one entry in order and reports each decision with its position in the entry. */
export function applyCustomers(
  state: LimiterState,
  requests: readonly CustomerRequest[],
  report?: (i: number, decision: Decision) => void,
): void {
  const { applied, rulesVersion } = state;
  const { term, index } = applied;
  for (const [i, request] of requests.entries()) {
    state.lookUp(request);
    const decision = decide(state, request, { term, index, position: i, rulesVersion });
    report?.(i, decision);
  }
}

/** The key has been looked up in the state. */
function decide(state: LimiterState, { userId, action }: CustomerRequest, place: DecidedAt): Decision {
  const { timeMillis } = state.applied;
  const before = recordAt(state.customers.find(state.name) ?? NO_RECORD, timeMillis);
  switch (action.type) {
    case 'read':
      return decisionWith(state, before, place);
    case 'reset':
      state.resetKey();
      return decisionWith(state, before, place);
    case 'set':
      return useDecision(state, setUsed(state, action), before, place);
    case 'block':
      return change(state, userId, recordOf(before, blockOf(action, timeMillis)), place);
    case 'put': {
      const { tier, overrides, isBlocked, durationMillis, ifVersion } = action;
      if (isOther(before, ifVersion)) return decisionWith(state, before, place, false);
      const block = isBlocked === undefined ? before : blockOf({ isBlocked, durationMillis }, timeMillis);
      return change(state, userId, recordOf({ tier, overrides }, block), place);
    }
    case 'delete':
      if (isOther(before, action.ifVersion)) return decisionWith(state, before, place, false);
      return change(state, userId, NO_RECORD, place);
    default: {
      const never: never = action;
      return never;
    }
  }
}

function useDecision(
  state: LimiterState,
  outcome: SetOutcome,
  record: CustomerRecord,
  place: DecidedAt,
): Decision {
  const { timeMillis } = state.applied;
  switch (outcome.kind) {
    case 'done':
      return decisionWith(state, record, place);
    case 'unknown_rule':
      return refusalOf('unknown_rule', outcome.ruleId, place, timeMillis);
    case 'at_capacity':
      return noRoom(state, place);
    case 'above':
      return {
        ...decisionWith(state, record, place, false),
        ruleId: outcome.ruleId,
        usedMax: outcome.usedMax,
      };
    default: {
      const never: never = outcome;
      return never;
    }
  }
}

type Block = Pick<CustomerRecord, 'isBlocked' | 'blockedUntilMillis'>;

interface WantedBlock {
  readonly isBlocked: boolean;
  readonly durationMillis?: number | undefined;
}

/** The end counts from the group time of the entry, so all replicas compute the same end, whenever they apply it. */
function blockOf({ isBlocked, durationMillis }: WantedBlock, timeMillis: number): Block {
  return durationMillis === undefined
    ? { isBlocked }
    : { isBlocked, blockedUntilMillis: timeMillis + durationMillis };
}

interface Terms {
  readonly tier?: string | undefined;
  readonly overrides: CustomerRecord['overrides'];
}

/** The version stays 0 here; `change` sets it to the index of the entry. */
function recordOf({ tier, overrides }: Terms, { isBlocked, blockedUntilMillis }: Block): CustomerRecord {
  return {
    version: 0,
    ...(tier !== undefined && { tier }),
    overrides,
    isBlocked,
    ...(blockedUntilMillis !== undefined && { blockedUntilMillis }),
  };
}

function isOther({ version }: CustomerRecord, ifVersion: number | undefined): boolean {
  return ifVersion !== undefined && ifVersion !== version;
}

/** Puts the record, or deletes it if it would say nothing. @param wanted its version is ignored */
function change(state: LimiterState, userId: string, wanted: CustomerRecord, place: DecidedAt): Decision {
  const { customers, name, applied } = state;
  const before = customers.find(name);
  // No index occurs twice, so no version does either, even if a key's record was deleted in between.
  const record = saysNothing(wanted) ? undefined : { ...wanted, version: applied.index };
  if (record === undefined && before === undefined) return decisionWith(state, NO_RECORD, place);
  if (record !== undefined && !hasRoom(state, record)) return noRoom(state, place);
  const hasOwn = [before, record].some((one) => (one?.overrides.length ?? 0) > 0);
  if (record === undefined) customers.remove(name);
  else customers.put(name, userId, record);
  state.changedMillis = applied.timeMillis;
  if (hasOwn) followOwn(state);
  return decisionWith(state, record ?? NO_RECORD, place);
}

function hasRoom({ customers, name, size, table }: LimiterState, record: CustomerRecord): boolean {
  const bytes = customers.bytesToPut(name, record);
  return bytes <= 0 || size.hasRoomForOperators(bytes, table?.partitionBytesMax ?? 0);
}

/** The key's limits have changed: its buckets carry grants that were made under the old limits. */
function followOwn({ keyTables, name, applied }: LimiterState): void {
  for (const keys of keyTables) {
    const slot = keys.find(name);
    if (slot !== NONE) keys.followOwn(slot, applied.index);
  }
}

function decisionWith(
  { applied }: LimiterState,
  record: CustomerRecord,
  place: DecidedAt,
  isDone = true,
): Decision {
  const decided = receiptAt(place, applied.timeMillis);
  return { ...NOT_JUDGED, decided, rulesVersion: place.rulesVersion, customer: { isDone, record } };
}

function noRoom({ applied }: LimiterState, place: DecidedAt): Decision {
  assert(place.position !== undefined, 'a change has its place in the log');
  const decided = receiptAt(place, applied.timeMillis);
  return { ...NOT_JUDGED, decided, rulesVersion: place.rulesVersion, refusal: 'at_capacity' };
}

/** The change that the operator wants. The key itself has been looked up in the state. */
interface WantedUse {
  readonly ruleIds: readonly string[];
  readonly used: number;
}

/**
 * `above`: `used` exceeds what `ruleId` may grant at once, which is `usedMax`. Nothing has changed unless it is `done`.
 */
type SetOutcome =
  | { readonly kind: 'done' }
  | { readonly kind: 'unknown_rule'; readonly ruleId: string }
  | { readonly kind: 'at_capacity' }
  | { readonly kind: 'above'; readonly ruleId: string; readonly usedMax: number };

/**
 * An operator sets how much of some rules a key has used: the key that was looked up last. Its grants under these
 * rules are forgotten, including those of earlier meters, and the new cost is recorded as granted now. Either all
 * rules change or none.
 */
function setUsed(state: LimiterState, { ruleIds, used }: WantedUse): SetOutcome {
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
