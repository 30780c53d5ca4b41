/** The cap on the bytes of a state, counted by a model that is the same on all replicas. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { InvalidRuleError, validateRuleTable } from '../../src/limiter/rules.ts';
import { KEY_BYTES, REQUEST_ID_BYTES, RUN_BYTES } from '../../src/limiter/state/state-size.ts';
import { Harness, harnessWith, restoreInto, snapshotOf, START, tableOf } from './harness.ts';
import type { Rule } from '../../src/api/rule.ts';

const CAP = 4_096;
const RESERVE = CAP / 8;

function capped(rule: Partial<Rule> = {}): Harness {
  const harness = new Harness();
  harness.rules(tableOf(1, [{ limit: 1_000, ...rule }], { partitionBytesMax: CAP }));
  return harness;
}

/** Adds new users until one is refused. */
function fill(harness: Harness): number {
  for (let users = 0; ; users += 1) {
    const { refusal } = harness.one({ userId: `user${String(users).padStart(4, '0')}` });
    if (refusal === 'at_capacity') return users;
    harness.nowMillis += 1;
  }
}

function sweepUntil(harness: Harness, bytes: number): void {
  for (let i = 0; i < 50 && harness.machine.stateBytes > bytes; i += 1) {
    harness.machine.apply({ type: 'sweep' }, harness.next());
  }
}

describe('the size of a state', () => {
  it('is the sum that its keys, runs and request ids take by the model', () => {
    const harness = harnessWith({ id: 'rule', limit: 9 });
    expect(harness.machine.stateBytes).toBe(0);
    harness.one({ userId: 'ada' });
    expect(harness.machine.stateBytes).toBe(KEY_BYTES + 3 + RUN_BYTES);
    // Grants in the same millisecond are one run.
    harness.one({ userId: 'ada' });
    expect(harness.machine.stateBytes).toBe(KEY_BYTES + 3 + RUN_BYTES);
    harness.nowMillis += 1;
    harness.one({ userId: 'ada', requestId: 'é' });
    // User id and request id, padded to whole words, and the rule id.
    const texts = 8 + 4;
    expect(harness.machine.stateBytes).toBe(KEY_BYTES + 3 + 2 * RUN_BYTES + REQUEST_ID_BYTES + texts);
  });

  it('is exactly zero again when all keys are forgotten', () => {
    const harness = harnessWith({ limit: 50 }, { id: 'b', limit: 2 });
    for (let i = 0; i < 500; i += 1) {
      harness.nowMillis += i % 7;
      harness.one({
        userId: `user${(i * 7) % 61}`,
        ruleId: i % 3 === 0 ? 'b' : undefined,
        requestId: `${i}`,
      });
    }
    expect(harness.machine.stateBytes).toBeGreaterThan(50_000);
    harness.nowMillis += 200_000;
    sweepUntil(harness, 0);
    expect(harness.machine.stateBytes).toBe(0);
    expect(harness.machine.stats()).toEqual({ keys: 0, grants: 0, requestIds: 0, customers: 0 });
  });

  it('does not depend on the history', () => {
    const user = fc.nat(30).map((n) => `user${n}`);
    const step = fc.record({ gap: fc.constantFrom(0, 1, 400, 130_000), user, id: fc.option(fc.nat(20)) });
    fc.assert(
      fc.property(fc.array(step, { maxLength: 150 }), fc.nat(), (steps, at) => {
        const whole = capped();
        const restored = capped();
        for (const [i, { gap, user: userId, id }] of steps.entries()) {
          if (i === at % steps.length) restoreInto(restored.machine, snapshotOf(restored.machine));
          for (const harness of [whole, restored]) {
            harness.nowMillis += gap;
            harness.one({ userId, ...(id !== null && { requestId: `${id}` }) });
          }
          expect(restored.machine.stateBytes).toBe(whole.machine.stateBytes);
        }
        expect(restored.machine.hash()).toBe(whole.machine.hash());
      }),
      { numRuns: 60 },
    );
  });
});

describe('a state at its cap', () => {
  it('refuses new users and new request ids, which leave no trace', () => {
    const harness = capped();
    const users = fill(harness);
    expect(users).toBe(Math.floor(CAP / (KEY_BYTES + 8 + RUN_BYTES)));
    expect(harness.machine.stateBytes).toBeLessThanOrEqual(CAP);
    const before = harness.machine.hash();
    const known = { userId: 'user0001' };
    expect(harness.one({ ...known, requestId: 'new' }).refusal).toBe('at_capacity');
    expect(harness.one({ userId: 'another' }).refusal).toBe('at_capacity');
    expect(harness.machine.quickDenial({ userId: 'another' }, harness.nowMillis)?.refusal).toBe(
      'at_capacity',
    );
    expect(harness.machine.hash()).toBe(before);
    // A limit's denial does not depend on room.
    expect(harness.one({ userId: 'another', cost: 1_001 })).toMatchObject({
      allowed: false,
      remaining: 1_000,
    });
  });

  it('serves known users from a reserve, up to an eighth above the cap', () => {
    const harness = capped();
    fill(harness);
    const known = { userId: 'user0001' };
    let granted = 0;
    for (; granted < 100; granted += 1) {
      harness.nowMillis += 1;
      // In the millisecond of its last grant, another grant takes no memory.
      const [first, second] = harness.ask(known, known);
      expect(second?.allowed).toBe(first?.allowed);
      if (first?.allowed !== true) break;
    }
    expect(granted).toBeGreaterThan(RESERVE / RUN_BYTES - 2);
    expect(harness.machine.stateBytes).toBeLessThanOrEqual(CAP + RESERVE);
    expect(harness.one(known).refusal).toBe('at_capacity');
    expect(harness.machine.quickDenial(known, harness.nowMillis)?.refusal).toBe('at_capacity');
  });

  it('lets an operator block an unknown user, even if it is full', () => {
    const harness = capped();
    fill(harness);
    const known = { userId: 'user0001' };
    do harness.nowMillis += 1;
    while (harness.one(known).allowed);
    expect(harness.one(known).refusal).toBe('at_capacity');
    expect(harness.say('mallory', { type: 'block', isBlocked: true })).toMatchObject({
      customer: { isDone: true, record: { isBlocked: true } },
    });
    expect(harness.one({ userId: 'mallory' }).isBlocked).toBe(true);
  });

  it('answers a request whose id is remembered', () => {
    const harness = capped();
    const asked = { userId: 'ada', requestId: 'q' };
    const first = harness.one(asked);
    fill(harness);
    expect(harness.one(asked)).toEqual(first);
    expect(harness.one({ ...asked, cost: 2 }).refusal).toBe('request_id_reused');
  });

  it('keeps everything if the cap was lowered, and still grants requests that take no memory', () => {
    const harness = harnessWith({ limit: 1_000 });
    for (let i = 0; i < 100; i += 1) harness.one({ userId: `user${i}` });
    harness.rules(tableOf(2, [{ limit: 1_000 }], { partitionBytesMax: CAP }));
    expect(harness.machine.stats().keys).toBe(100);
    expect(harness.one({ userId: 'user7' }).allowed).toBe(true);
    harness.nowMillis += 1;
    expect(harness.one({ userId: 'user7' }).refusal).toBe('at_capacity');
    // Its old grants have left the window and make room for the new one.
    harness.nowMillis += 1_001;
    expect(harness.one({ userId: 'user7' }).allowed).toBe(true);
  });

  it('forgets idle items without any grant, and then has room again', () => {
    const harness = capped();
    fill(harness);
    harness.nowMillis += 2_000;
    // A refusal is no grant, so it causes no sweep.
    expect(harness.one({ userId: 'another', requestId: 'q' }).refusal).toBe('at_capacity');
    harness.machine.apply({ type: 'sweep' }, harness.next());
    expect(harness.machine.stateBytes).toBe(0);
    expect(harness.one({ userId: 'another', requestId: 'q' }).allowed).toBe(true);
  });
});

describe('a node without room', () => {
  it('refuses new users and ids before the log; with no memory left, every request that takes memory', () => {
    const harness = harnessWith({ limit: 100 });
    const { machine } = harness;
    harness.one({ userId: 'ada' });
    const known = { userId: 'ada' };
    const withId = { userId: 'ada', requestId: 'q' };
    const stranger = { userId: 'bob' };
    const refusals = (room: 'free' | 'full' | 'exhausted', nowMillis: number): unknown[] =>
      [known, withId, stranger].map((asked) => machine.quickDenial(asked, nowMillis, room)?.refusal);
    expect(refusals('free', START + 5)).toEqual([undefined, undefined, undefined]);
    expect(refusals('full', START + 5)).toEqual([undefined, 'at_capacity', 'at_capacity']);
    expect(refusals('exhausted', START + 5)).toEqual(['at_capacity', 'at_capacity', 'at_capacity']);
    expect(refusals('exhausted', START)).toEqual([undefined, 'at_capacity', 'at_capacity']);
    // Decisions of the log do not depend on the memory of one node.
    expect(harness.one(stranger).allowed).toBe(true);
  });
});

describe('the cap', () => {
  it.each([4_095, 2 ** 32 + 1, 1.5, '1'])('out of its bounds is refused: %s', (partitionBytesMax) => {
    const table = { version: 1, rules: [{ id: 'a', limit: 1, windowMillis: 1 }], partitionBytesMax };
    expect(() => validateRuleTable(table)).toThrow(InvalidRuleError);
  });

  it('is 256 MiB by default', () => {
    const rules = [{ id: 'a', limit: 1, windowMillis: 1 }];
    expect(validateRuleTable({ version: 1, rules }).partitionBytesMax).toBe(256 * 1_024 * 1_024);
  });
});
