/** Customer commands in entries and snapshots: replicas that applied the same commands are equal. */
import { describe, expect, it } from 'vitest';
import type { CustomerAction } from '../../src/api/customer.ts';
import type { Rule } from '../../src/api/rule.ts';
import { decodeCommand, mayBeSlow } from '../../src/limiter/log/command.ts';
import { encodeCustomers } from '../../src/limiter/log/customer-entry.ts';
import { chunksOf, entryOf, Harness, harnessWith, restoreInto } from './harness.ts';

const CLUSTER: Partial<Rule> = { id: 'r', limit: 5, windowMillis: 1_000, clock: 'cluster' };

/** Steps that differ between seeds and are the same for each replica. */
function play(harness: Harness, seed: number, steps: number): void {
  let state = seed;
  const draw = (bound: number): number => {
    state = (Math.imul(state, 1_103_515_245) + 12_345) & 0x7fff_ffff;
    return (state >>> 8) % bound;
  };
  for (let i = 0; i < steps; i += 1) {
    harness.nowMillis += draw(200);
    const userId = `u${draw(6)}`;
    const kind = draw(9);
    const overrides = [{ ruleId: draw(2) === 0 ? 'r' : 'b', limit: draw(6), burst: 1 + draw(6) }];
    if (kind === 0) harness.say(userId, { type: 'put', tier: `t${draw(3)}`, overrides });
    else if (kind === 1) harness.say(userId, { type: 'delete' });
    else if (kind === 2) harness.say(userId, { type: 'block', isBlocked: draw(2) === 0 });
    else if (kind === 3) harness.say(userId, { type: 'reset' });
    else if (kind === 8)
      harness.say(userId, { type: 'set', used: draw(4), ruleIds: draw(2) === 0 ? ['r'] : ['b', 'r'] });
    else {
      const requestId = `${draw(20)}`;
      const ruleId = draw(2) === 0 ? 'r' : 'b';
      if (kind === 4) harness.one({ ask: 'refund', userId, requestId });
      else harness.one({ userId, ruleId, requestId, cost: 1 + draw(2) });
    }
  }
}

describe('replicas', () => {
  it.each([1, 2, 3, 4, 5, 6])(
    'are equal after a snapshot that was read while changes went on, %i',
    (seed) => {
      const rules = [CLUSTER, { ...CLUSTER, id: 'b', meter: 'tokenBucket' } as const];
      const harness = harnessWith(...rules);
      play(harness, seed, 150);
      const at = { index: harness.index, nowMillis: harness.nowMillis };
      const before = harness.machine.hash();
      const snapshot = harness.machine.snapshot();
      play(harness, seed + 100, 150);
      const other = new Harness();
      restoreInto(other.machine, chunksOf(snapshot));
      expect(other.machine.hash()).toBe(before);
      expect(other.machine.stateBytes).toBeGreaterThan(0);
      Object.assign(other, at);
      play(other, seed + 100, 150);
      expect(other.machine.hash()).toBe(harness.machine.hash());
      expect(other.machine.stateBytes).toBe(harness.machine.stateBytes);
    },
  );
});

describe('an entry of operators', () => {
  const actions: CustomerAction[] = [
    { type: 'read' },
    {
      type: 'put',
      tier: 'pro',
      overrides: [{ ruleId: 'r', limit: 0, burst: 9 }],
      isBlocked: true,
      ifVersion: 0,
    },
    { type: 'put', overrides: [{ ruleId: 'ÿ', limit: 1_000_000 }], isBlocked: undefined },
    { type: 'delete', ifVersion: 7 },
    { type: 'delete' },
    { type: 'block', isBlocked: false },
    { type: 'reset' },
    { type: 'set', ruleIds: ['r'], used: 0 },
    { type: 'set', ruleIds: ['r', 'ÿ/day'], used: 4_294_967_295 },
  ];
  const data = encodeCustomers(actions.map((action, i) => ({ ask: 'customer', userId: `u${i}`, action })));

  it('round-trips, may take long to apply, and no prefix of it is valid', () => {
    expect(decodeCommand(data)).toEqual({
      type: 'customers',
      requests: actions.map((action, i) => ({ ask: 'customer', userId: `u${i}`, action })),
    });
    expect(mayBeSlow(data)).toBe(true);
    for (let end = 0; end < data.length; end += 1)
      expect(() => decodeCommand(data.subarray(0, end))).toThrow(/not a limiter command/);
  });

  it('sets the usage of no rule twice', () => {
    const action: CustomerAction = { type: 'set', ruleIds: ['r', 'r'], used: 1 };
    const entry = encodeCustomers([{ ask: 'customer', userId: 'ada', action }]);
    expect(() => decodeCommand(entry)).toThrow(/windows/);
  });

  it('changes no record twice', () => {
    const twice = [{ type: 'delete' }, { type: 'block', isBlocked: true }] as const;
    const entry = encodeCustomers(twice.map((action) => ({ ask: 'customer', userId: 'ada', action })));
    expect(() => decodeCommand(entry)).toThrow(/two changes of one record/);
  });

  it('is no batch, and the guards of a batch round-trip', () => {
    const requests = [
      { userId: 'ada', ruleId: 'r', guard: { userId: 'customer=ada', version: 8 } },
      { userId: 'bob', ruleId: 'r' },
      { ask: 'refund', userId: 'ada', requestId: '1' } as const,
    ];
    expect(decodeCommand(entryOf(requests)).type).toBe('allow');
    const harness = harnessWith(CLUSTER);
    expect(harness.ask(...requests).map(({ refusal, allowed }) => refusal ?? allowed)).toEqual([
      'customer_changed',
      true,
      false,
    ]);
  });
});
