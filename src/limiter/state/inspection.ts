/**
 * Lists the state item by item, as lookups find it, for tests. It uses no code of the snapshot writer and reader,
 * so it also shows what both of them forget. It changes nothing.
 */

import type { CustomerRecord } from '../../api/customer-record.ts';
import type { Decision } from '../decision.ts';
import type { Fingerprint } from '../question.ts';
import type { KeyRun } from '../meters/meter.ts';
import type { Rule } from '../../api/rule.ts';
import type { KeyTable } from './key-table.ts';
import type { LimiterState } from './limiter-state.ts';
import { GrantView } from './remembered-grant.ts';
import { idBehind, NONE } from './rows.ts';
import type { UtcStep } from './utc-steps.ts';

/** One item of a state: its counters, a rule, a key, a remembered request id, or a customer record. */
export type StateItem =
  | {
      readonly kind: 'state';
      readonly version: number;
      readonly createdMillis: number;
      readonly changedMillis: number;
      readonly droppedThroughMillis: number;
      readonly utcSteps: readonly UtcStep[];
      readonly sweepTable: number;
      readonly sweepSlot: number;
      readonly bytes: number;
    }
  | {
      readonly kind: 'rule';
      readonly rule: Rule;
      readonly groupWindowMillis: number;
      readonly isActive: boolean;
      readonly isEventTimed: boolean;
      readonly evictedThroughMillis: number;
      readonly ruledIndex: number;
      readonly sinceMillis: number;
    }
  | {
      readonly kind: 'key';
      readonly ruleId: string;
      readonly userId: string;
      readonly madeMillis: number;
      /** Oldest first; empty if the key is not found by its name. */
      readonly runs: readonly KeyRun[];
    }
  | {
      readonly kind: 'request';
      readonly userId: string;
      readonly requestId: string;
      readonly asked: Fingerprint;
      readonly attempt: number | undefined;
      readonly expiresMillis: number;
      /** A retry finds this grant; false if a later grant under the same id replaced it. */
      readonly isFound: boolean;
      readonly isRefunded: boolean;
      readonly decision: Decision;
    }
  | {
      readonly kind: 'record';
      readonly userId: string;
      /** Undefined if it is not found by its key. */
      readonly record: CustomerRecord | undefined;
    };

const decoder = new TextDecoder('utf-8', { ignoreBOM: true });

/** All items of a state. O(state). The state must not change meanwhile. */
export function* itemsOf(state: LimiterState): Generator<StateItem, void> {
  const { createdMillis, changedMillis, droppedThroughMillis, sweepTable, sweepSlot, size } = state;
  yield {
    kind: 'state',
    version: state.table?.version ?? 0,
    createdMillis,
    changedMillis,
    droppedThroughMillis,
    utcSteps: state.utc.all,
    sweepTable,
    sweepSlot,
    bytes: size.bytes,
  };
  for (const keys of state.keyTables) {
    yield {
      kind: 'rule',
      rule: keys.rule,
      groupWindowMillis: keys.effectiveWindowMillis,
      isActive: keys.active,
      isEventTimed: keys.eventTimed,
      evictedThroughMillis: keys.evictedThroughMillis,
      ruledIndex: keys.ruledIndex,
      sinceMillis: keys.sinceMillis,
    };
    yield* keysOf(keys, state);
  }
  yield* requestsOf(state);
  yield* recordsOf(state);
}

function* keysOf(table: KeyTable, { name, stated }: LimiterState): Generator<StateItem, void> {
  const { keys, meter } = table;
  for (let slot = 0; slot < keys.size; slot += 1) {
    const { userId, ruleId } = stated.keyAt(table, slot);
    name.set(userId);
    const found = (stated.keysFor(ruleId) ?? table).find(name);
    const runs = found === NONE ? [] : meter.inspect(found);
    const madeMillis = keys.madeMillisAt(slot);
    yield { kind: 'key', ruleId, userId, madeMillis, runs };
  }
}

function* requestsOf({ memory, requestKey }: LimiterState): Generator<StateItem, void> {
  const view = new GrantView();
  for (let i = 0; i < memory.size; i += 1) {
    const id = idBehind(memory.first, i);
    memory.view(id, view);
    const {
      bytes,
      bytesAt,
      userBytes,
      requestIdBytes,
      decision,
      expiresMillis,
      fingerprint: asked,
      attempt,
      isRefunded,
    } = view;
    const userId = textOf(bytes, bytesAt, userBytes);
    const requestId = textOf(bytes, bytesAt + userBytes, requestIdBytes);
    requestKey.set(userId, requestId);
    const isFound = memory.find(requestKey, 0) === id;
    const remembered = { asked, attempt, expiresMillis, isFound, isRefunded, decision };
    yield { kind: 'request', userId, requestId, ...remembered };
  }
}

function* recordsOf({ customers, name }: LimiterState): Generator<StateItem, void> {
  for (const { userId } of customers.all) {
    name.set(userId);
    yield { kind: 'record', userId, record: customers.find(name) };
  }
}

function textOf(bytes: Uint8Array, from: number, length: number): string {
  return decoder.decode(bytes.subarray(from, from + length));
}
