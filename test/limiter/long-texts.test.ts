/** Texts as long as they may be: keys, request ids, ids of rules and names of tiers, in memory and in snapshots. */
import { expect, it } from 'vitest';
import { KEY_BYTES_MAX, REQUEST_ID_BYTES_MAX, RULE_ID_BYTES_MAX } from '../../src/api/request.ts';
import { LimiterStateMachine } from '../../src/limiter/state-machine.ts';
import { type Harness, harnessWith, restoreInto, snapshotOf } from './harness.ts';

const RULE = 'r'.repeat(RULE_ID_BYTES_MAX);
const FURTHER = `f${'r'.repeat(RULE_ID_BYTES_MAX - 1)}`;
const REQUEST_ID = 'i'.repeat(REQUEST_ID_BYTES_MAX);

function stateOf(machine: LimiterStateMachine): unknown[] {
  return [machine.hash(), ...machine.inspect()];
}

/** Checks that a snapshot restores the state, and returns the restored machine. */
function restored({ machine }: Harness): LimiterStateMachine {
  const copy = new LimiterStateMachine();
  restoreInto(copy, snapshotOf(machine));
  expect(stateOf(copy)).toEqual(stateOf(machine));
  return copy;
}

// Three-byte characters: the number of bytes is not that of characters.
it.each([1, 254, 255, 256, 257, 510, 511, 512, 513, 767, 768, KEY_BYTES_MAX - 1, KEY_BYTES_MAX])(
  'a key of %i bytes keeps its grants, its record, its block and its request id',
  (bytes) => {
    const userId = `${'€'.repeat(Math.floor(bytes / 3))}${'k'.repeat(bytes % 3)}`;
    const harness = harnessWith(
      { id: RULE, limit: 5, clock: 'cluster' },
      { id: FURTHER, limit: 5, clock: 'cluster' },
    );
    const request = {
      userId,
      ruleId: RULE,
      requestId: REQUEST_ID,
      askedDigest: 7,
      further: [{ userId: 'further', ruleId: FURTHER }],
    };
    const granted = harness.one(request);
    expect(granted).toMatchObject({ allowed: true, remaining: 4 });
    expect(harness.one(request)).toEqual(granted);
    harness.say(userId, { type: 'put', tier: 't'.repeat(64), overrides: [] });
    harness.say(userId, { type: 'block', isBlocked: true, durationMillis: 1_000 });
    expect(harness.one({ userId, ruleId: RULE })).toMatchObject({ allowed: false });
    restored(harness);
    harness.nowMillis += 1_000;
    expect(harness.one({ userId, ruleId: RULE })).toMatchObject({ allowed: true, remaining: 3 });
    expect(harness.one({ ask: 'refund', userId, requestId: REQUEST_ID })).toMatchObject({
      refund: { refunded: true },
    });
    restored(harness);
    harness.nowMillis += 1_000_000;
    harness.say(userId, { type: 'delete' });
    expect(harness.one({ userId, ruleId: RULE })).toMatchObject({ allowed: true, remaining: 4 });
    restored(harness);
  },
);
