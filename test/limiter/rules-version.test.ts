/** Every answer has the version of the rules by which it was decided. */
import { describe, expect, it } from 'vitest';
import { type Harness, harnessWith, restoreInto, snapshotOf, tableOf } from './harness.ts';

const RULES = [{ limit: 2 }, { limit: 5 }];

/** Versions 1 and 2 were in force before; version 4 is in force now. */
function changed(harness: Harness): Harness {
  harness.rules(tableOf(2, RULES));
  harness.rules(tableOf(4, RULES));
  return harness;
}

describe('the version of the rules in an answer', () => {
  it('is the one in force at the entry that granted or denied', () => {
    const harness = harnessWith(...RULES);
    expect(harness.one({ userId: 'ada', cost: 2 })).toMatchObject({ allowed: true, rulesVersion: 1 });
    expect(harness.one({ userId: 'ada' })).toMatchObject({ allowed: false, rulesVersion: 1 });
    changed(harness);
    expect(harness.one({ userId: 'ada' })).toMatchObject({ allowed: false, rulesVersion: 4 });
    // A table with a lower version does not come into force.
    harness.rules(tableOf(3, RULES));
    expect(harness.one({ userId: 'bob' })).toMatchObject({ allowed: true, rulesVersion: 4 });
  });

  it('is the one of the state for a quick denial and for a peek', () => {
    const harness = harnessWith(...RULES);
    harness.one({ userId: 'ada', cost: 2 });
    for (const version of [1, 4]) {
      const { machine, nowMillis } = harness;
      expect(machine.quickDenial({ userId: 'ada' }, nowMillis)).toMatchObject({ rulesVersion: version });
      const joint = { userId: 'ada', ruleId: 'rule0', further: [{ userId: 'ada', ruleId: 'rule1' }] };
      expect(machine.quickDenial(joint, nowMillis)).toMatchObject({ rulesVersion: version });
      expect(machine.peek({ ask: 'peek', userId: 'ada' }, nowMillis)).toMatchObject({
        rulesVersion: version,
      });
      changed(harness);
    }
  });

  it('is, for a retry, the one of its grant, even if only a snapshot contains the grant', () => {
    const harness = harnessWith(...RULES);
    const alone = { userId: 'ada', requestId: 'r1' };
    const joint = {
      userId: 'bob',
      ruleId: 'rule0',
      requestId: 'r2',
      askedDigest: 7,
      further: [{ userId: 'bob', ruleId: 'rule1' }],
    };
    const granted = [harness.one(alone), harness.one(joint)];
    expect(granted).toMatchObject([{ rulesVersion: 1 }, { rulesVersion: 1 }]);
    changed(harness);
    expect([harness.one(alone), harness.one(joint)]).toEqual(granted);
    const copy = harnessWith(...RULES);
    restoreInto(copy.machine, snapshotOf(harness.machine));
    copy.index = harness.index;
    expect([copy.one(alone), copy.one(joint)]).toEqual(granted);
    expect(copy.machine.isRemembered(alone)).toBe(true);
  });

  it('may be the largest valid version', () => {
    const harness = harnessWith(...RULES);
    harness.rules(tableOf(Number.MAX_SAFE_INTEGER, RULES));
    const request = { userId: 'ada', requestId: 'r1' };
    expect(harness.one(request)).toMatchObject({ rulesVersion: Number.MAX_SAFE_INTEGER });
    expect(harness.one(request)).toMatchObject({ rulesVersion: Number.MAX_SAFE_INTEGER });
  });
});
