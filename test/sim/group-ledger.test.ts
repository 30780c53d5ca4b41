/** Which entries the ledger of a group counts as a change of a key. */
import { expect, test } from 'vitest';
import type { Decision } from '../../src/limiter/decision.ts';
import { changedBy, newLedger } from './group-ledger.ts';
import type { SaidOfKey } from './logged-entries.ts';

/** By entry 7. */
function changedAt(said: SaidOfKey['said'], isDone: boolean, version: number): number | undefined {
  const group = newLedger(1);
  const record = { version, overrides: [], isBlocked: false };
  const decision = { customer: { isDone, record } } as unknown as Decision;
  changedBy(group, { userId: 'a', said }, decision, { index: 7, realMillis: 1 });
  return group.ownChanged.get('a');
}

test('a key is judged anew when its own limits change or are removed', () => {
  const nothing = {
    type: 'put',
    tier: undefined,
    overrides: [],
    isBlocked: undefined,
    ifVersion: undefined,
  } as const;
  expect(changedAt(nothing, true, 7)).toBe(7);
  expect(changedAt(nothing, true, 0)).toBe(7);
  expect(changedAt(nothing, false, 0)).toBeUndefined();
  expect(changedAt(nothing, false, 5)).toBeUndefined();
  expect(changedAt({ type: 'read' }, true, 0)).toBeUndefined();
});
