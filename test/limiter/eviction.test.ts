/**
 * Forgetting idle keys: it bounds memory, and no late or far timestamp is granted in the window of a forgotten grant.
 */
import { describe, expect, it } from 'vitest';
import { FAR_EPOCH_HORIZON_MILLIS, LATE_MILLIS } from '../../src/limiter/state/lost-history.ts';
import { type Harness, harnessWith, restoreInto, snapshotOf, START, tableOf } from './harness.ts';

/** Grants to other users until a sweep has visited every key. The keys of the other users stay. */
function sweep(harness: Harness, timestamps: boolean): void {
  for (let i = 0; i < 20; i += 1) {
    harness.one({
      userId: `sweeper${i}`,
      ruleId: 'sweeper',
      timestampMillis: timestamps ? harness.nowMillis : undefined,
    });
  }
}

const sweeper = { id: 'sweeper', limit: 1_000_000, windowMillis: 2_678_400_000 };
const has = (harness: Harness): boolean => harness.machine.stats().keys > 20;

describe('an idle key', () => {
  it('granted in group time is forgotten once its grants are out of the wider window', () => {
    const harness = harnessWith({ limit: 1 }, sweeper);
    harness.one({ userId: 'ada' });
    harness.nowMillis += 1_000;
    sweep(harness, false);
    expect(has(harness)).toBe(true);
    harness.nowMillis += 1;
    sweep(harness, false);
    expect(has(harness)).toBe(false);
  });

  it('granted at a timestamp of the caller is kept a minute longer', () => {
    const harness = harnessWith({ limit: 1 }, sweeper);
    harness.allows('ada', START);
    harness.nowMillis += 1_000 + LATE_MILLIS;
    sweep(harness, true);
    expect(has(harness)).toBe(true);
    harness.nowMillis += 1;
    sweep(harness, true);
    expect(has(harness)).toBe(false);
  });

  it('keeps its limit for a late timestamp once it is forgotten', () => {
    const harness = harnessWith({ limit: 1 }, sweeper);
    harness.allows('ada', START);
    harness.nowMillis += 1_001 + LATE_MILLIS;
    sweep(harness, true);
    expect(has(harness)).toBe(false);
    // This would be a second grant in the window of the first.
    expect(harness.one({ userId: 'ada', timestampMillis: START + 1 })).toMatchObject({
      allowed: false,
      remaining: 0,
      retryAfterMillis: 1_000,
      decided: { timeMillis: START + 1_001 },
    });
    // Nor through a far epoch, in which the key becomes known again.
    expect(harness.allows('ada', 1_005)).toBe(true);
    expect(harness.allows('ada', START + 1)).toBe(false);
    // Also from slightly below the near epoch, as far as a window reaches.
    const edge = START - 2_678_400_000;
    expect(harness.allows('bob', edge - 1_000)).toBe(false);
    expect(harness.allows('eve', edge - 1_001)).toBe(true);
    expect(harness.allows('ada', START + 1_001)).toBe(true);
  });

  it('forgotten in the near epoch keeps its limit there, also after requests in a far epoch', () => {
    const harness = harnessWith({ limit: 1 }, sweeper);
    harness.allows('ada', START);
    harness.nowMillis += 1_001 + LATE_MILLIS;
    sweep(harness, true);
    expect(has(harness)).toBe(false);
    // Seconds mistaken for milliseconds. The key is known again, but not its forgotten grants.
    expect(harness.allows('ada', START / 1_000)).toBe(true);
    expect(harness.one({ userId: 'ada', timestampMillis: START + 1 })).toMatchObject({
      allowed: false,
      remaining: 0,
      retryAfterMillis: 1_000,
      decided: { timeMillis: START + 1_001 },
    });
    // In the far epoch a late request is still judged at the newest grant there.
    expect(harness.allows('ada', START / 1_000 - 1)).toBe(false);
    expect(harness.one({ userId: 'ada', timestampMillis: START / 1_000 - 1 }).decided.timeMillis).toBe(
      START / 1_000,
    );
    expect(harness.allows('ada', START + 1_001)).toBe(true);
  });

  it('of a far epoch keeps its limit there, also after requests in the near epoch', () => {
    const harness = harnessWith({ limit: 2 }, sweeper);
    const far = START / 1_000;
    expect(harness.allows('ada', far)).toBe(true);
    expect(harness.allows('ada', far + 1)).toBe(true);
    expect(harness.allows('ada', START)).toBe(true);
    harness.nowMillis += 1_001 + LATE_MILLIS;
    sweep(harness, true);
    restoreInto(harness.machine, snapshotOf(harness.machine));
    // The key counts as one of the near epoch, so a late request is judged at its newest grant.
    expect(harness.one({ userId: 'ada', timestampMillis: far + 60 })).toMatchObject({
      allowed: true,
      remaining: 0,
      decided: { timeMillis: START },
    });
    expect(harness.allows('ada', far + 61)).toBe(false);
    harness.nowMillis += FAR_EPOCH_HORIZON_MILLIS;
    sweep(harness, true);
    expect(has(harness)).toBe(false);
    expect(harness.allows('ada', far + 70_000)).toBe(true);
  });

  it('is not forgotten between requests whose lag exceeds the time to forget', () => {
    // An hour behind group time, as with a backlog, or if the first leader's wall clock was ahead.
    const harness = harnessWith({ limit: 5 }, sweeper);
    const behind = START - 3_600_000;
    let granted = 0;
    for (let i = 0; i < 500; i += 1) {
      harness.nowMillis += 1;
      if (harness.allows('ada', behind)) granted += 1;
      sweep(harness, true);
    }
    expect(granted).toBe(5);
  });

  it.each([
    [500, 0],
    [0, 500],
  ])(
    'leaves a floor for timestamps that never falls, for any order of forgetting: %i, %i',
    (first, second) => {
      const harness = harnessWith({ limit: 1 }, sweeper);
      harness.allows('ada', START + first);
      harness.allows('bob', START + second);
      harness.nowMillis += 2_000 + LATE_MILLIS;
      sweep(harness, true);
      expect(has(harness)).toBe(false);
      expect(harness.one({ userId: 'eve', timestampMillis: START + 1_400 }).decided.timeMillis).toBe(
        START + 1_501,
      );
    },
  );

  it('is found by a sweep under any rule', () => {
    const harness = harnessWith({ limit: 1 }, { id: 'b', limit: 1 }, sweeper, { id: 'c', limit: 1 });
    harness.ask({ userId: 'ada' }, { userId: 'ada', ruleId: 'b' }, { userId: 'ada', ruleId: 'c' });
    harness.nowMillis += 1_001;
    sweep(harness, false);
    expect(has(harness)).toBe(false);
  });

  it('does not move timestamps that are less than a minute late', () => {
    const harness = harnessWith({ limit: 1 }, sweeper);
    for (let i = 0; i < 300; i += 1) {
      harness.nowMillis += 1_000;
      const timestampMillis = harness.nowMillis - LATE_MILLIS;
      expect(harness.one({ userId: `u${i}`, timestampMillis }).decided.timeMillis).toBe(timestampMillis);
    }
    expect(harness.machine.stats().keys).toBeLessThan(150);
  });

  it('granted in group time keeps its limit for a first, late timestamp, too', () => {
    const harness = harnessWith({ limit: 1 }, sweeper);
    harness.one({ userId: 'ada' });
    harness.nowMillis += 1_001;
    sweep(harness, false);
    expect(has(harness)).toBe(false);
    expect(harness.one({ userId: 'ada', timestampMillis: START }).decided.timeMillis).toBe(START + 1_001);
  });

  it('of a far epoch is kept for a day of group time after its last grant', () => {
    const harness = harnessWith({ limit: 1 }, sweeper);
    expect(harness.allows('ada', 5)).toBe(true);
    harness.nowMillis += FAR_EPOCH_HORIZON_MILLIS - 1;
    sweep(harness, false);
    expect(harness.allows('ada', 7)).toBe(false);
    expect(harness.allows('ada', 1_005)).toBe(true);
    harness.nowMillis += FAR_EPOCH_HORIZON_MILLIS - 1;
    sweep(harness, false);
    expect(has(harness)).toBe(true);
    harness.nowMillis += 1;
    sweep(harness, false);
    expect(has(harness)).toBe(false);
    expect(harness.one({ userId: 'ada', timestampMillis: 9 })).toMatchObject({ decided: { timeMillis: 9 } });
  });

  it('of a removed rule is forgotten as well', () => {
    const harness = harnessWith({ id: 'a', limit: 1 }, sweeper);
    harness.one({ userId: 'ada' });
    harness.rules(tableOf(2, [sweeper]));
    harness.nowMillis += 1_001;
    sweep(harness, false);
    expect(has(harness)).toBe(false);
  });
});

describe('memory', () => {
  it.each([
    ['in group time', false, 20_000],
    ['at timestamps of callers', true, 20_000 + LATE_MILLIS],
  ])('reaches a plateau under steady load of ever-new users %s', (_name, timestamps, lifeMillis) => {
    const harness = harnessWith({ limit: 5, windowMillis: 20_000 });
    const live = lifeMillis / 50;
    let highest = 0;
    for (let i = 0; i < 8 * live; i += 1) {
      harness.nowMillis += 50;
      harness.one({ userId: `u${i}`, timestampMillis: timestamps ? harness.nowMillis : undefined });
      if (i % 100 === 0) highest = Math.max(highest, harness.machine.stats().keys);
    }
    expect(highest).toBeLessThan(live * 2.1);
  });
});
