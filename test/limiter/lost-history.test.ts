/** Lost history: cost that was granted after a backup is not granted again within its window. */
import { describe, expect, it } from 'vitest';
import { decodeCommand, encodeHistoryBegins, encodeHistoryLost } from '../../src/limiter/log/command.ts';
import { FAR_EPOCH_HORIZON_MILLIS, LATE_MILLIS } from '../../src/limiter/state/lost-history.ts';
import { MAX_AHEAD_MILLIS_DEFAULT } from '../../src/limiter/rules.ts';
import type { Rule } from '../../src/api/rule.ts';
import { Harness, harnessWith, restoreInto, snapshotOf, START, tableOf } from './harness.ts';

const WINDOW_MILLIS = 1_001;

function lose(harness: Harness): void {
  harness.machine.apply(decodeCommand(encodeHistoryLost()), harness.next());
}

function begin(harness: Harness, wallMillis = harness.nowMillis): void {
  harness.machine.apply(decodeCommand(encodeHistoryBegins(wallMillis)), harness.next());
}

/** A state from which another machine continues. */
function restored(harness: Harness): Harness {
  const copy = new Harness();
  restoreInto(copy.machine, snapshotOf(harness.machine));
  copy.index = harness.index;
  copy.nowMillis = harness.nowMillis;
  return copy;
}

describe('lost history', () => {
  it('saturates known and unknown keys until a window after the group runs again', () => {
    const harness = harnessWith({ clock: 'cluster' });
    harness.allows('ada');
    lose(harness);
    harness.nowMillis += 100_000;
    expect(harness.machine.awaitsHistory).toBe(true);
    expect(harness.one({ userId: 'ada' })).toMatchObject({
      allowed: false,
      remaining: 0,
      retryAfterMillis: WINDOW_MILLIS,
    });
    begin(harness);
    harness.nowMillis += 400;
    for (const userId of ['ada', 'grace']) {
      expect(harness.one({ userId })).toMatchObject({
        allowed: false,
        retryAfterMillis: WINDOW_MILLIS - 400,
      });
      expect(harness.machine.quickDenial({ userId }, harness.nowMillis)).toMatchObject({ remaining: 0 });
    }
    harness.nowMillis += WINDOW_MILLIS - 401;
    expect(harness.allows('grace')).toBe(false);
    harness.nowMillis += 1;
    expect([harness.allows('ada'), harness.allows('grace')]).toEqual([true, true]);
  });

  it('saturates keys for a window of the rule in force, so a shorter window ends it earlier', () => {
    const harness = harnessWith({ clock: 'cluster', windowMillis: 86_400_000 });
    lose(harness);
    begin(harness);
    harness.nowMillis += 100;
    expect(harness.allows('ada')).toBe(false);
    harness.rules(tableOf(2, [{ clock: 'cluster', windowMillis: WINDOW_MILLIS }]));
    expect(harness.allows('ada')).toBe(false);
    harness.nowMillis += WINDOW_MILLIS;
    expect(harness.allows('ada')).toBe(true);
    harness.rules(tableOf(3, [{ clock: 'cluster', windowMillis: 86_400_000 }]));
    expect(harness.allows('grace')).toBe(false);
  });

  it('is reported as the reason of a denial, with the remaining time, and no longer when it is over', () => {
    const harness = harnessWith({ clock: 'cluster', limit: 1 }, { clock: 'cluster', windowMillis: 5_000 });
    expect(harness.machine.restoredMillis(harness.nowMillis)).toBe(0);
    lose(harness);
    expect(harness.one({ userId: 'ada' })).toMatchObject({ restoredMillis: WINDOW_MILLIS });
    begin(harness);
    harness.nowMillis += 400;
    expect(harness.one({ userId: 'ada' })).toMatchObject({
      allowed: false,
      restoredMillis: WINDOW_MILLIS - 400,
      retryAfterMillis: WINDOW_MILLIS - 400,
    });
    // The rule with the longest window decides.
    expect(harness.machine.restoredMillis(harness.nowMillis)).toBe(5_001 - 400);
    const keyStatus = harness.machine.peek({ ask: 'peek', userId: 'ada' }, harness.nowMillis);
    expect(keyStatus?.limits.map(({ restoredMillis }) => restoredMillis)).toEqual([
      WINDOW_MILLIS - 400,
      5_001 - 400,
    ]);
    harness.nowMillis += WINDOW_MILLIS;
    expect(harness.allows('ada')).toBe(true);
    // From now on the limit denies.
    const denial = harness.one({ userId: 'ada' });
    expect([denial.allowed, 'restoredMillis' in denial]).toEqual([false, false]);
    harness.nowMillis += 5_000;
    expect(harness.machine.restoredMillis(harness.nowMillis)).toBe(0);
  });

  it('is reported by the wait of requests without a timestamp, however old the backup is', () => {
    const harness = harnessWith({ clock: 'request' });
    lose(harness);
    // The wall clock of the leader is a day ahead of the group time that the backup had.
    begin(harness, harness.nowMillis + 86_400_000);
    expect(harness.machine.restoredMillis(harness.nowMillis)).toBe(WINDOW_MILLIS);
    harness.nowMillis += WINDOW_MILLIS;
    expect(harness.machine.restoredMillis(harness.nowMillis)).toBe(0);
    expect(harness.allows('ada')).toBe(true);
  });

  it('is not the reason if the cost never fits', () => {
    const harness = harnessWith({ clock: 'cluster', limit: 0 });
    lose(harness);
    begin(harness);
    const denial = harness.one({ userId: 'ada' });
    expect([denial.allowed, 'restoredMillis' in denial]).toEqual([false, false]);
  });

  it('is the reason if the limit with the longest wait denies because of it', () => {
    const harness = harnessWith({ clock: 'cluster' }, { clock: 'cluster', windowMillis: 5_000 });
    const [short, long] = harness.machine.ruleTable?.rules.map(({ id }) => id) ?? [];
    const further = [{ userId: 'ip', ruleId: long ?? '' }];
    const asked = { userId: 'ada', ruleId: short, askedDigest: 7, further };
    lose(harness);
    begin(harness);
    expect(harness.one(asked)).toMatchObject({ ruleId: long, restoredMillis: 5_001 });
    harness.nowMillis += WINDOW_MILLIS;
    const { limits = [], ...denial } = harness.one(asked);
    expect(denial).toMatchObject({ ruleId: long, restoredMillis: 5_001 - WINDOW_MILLIS });
    expect(limits.map(({ restoredMillis }) => restoredMillis)).toEqual([undefined, 5_001 - WINDOW_MILLIS]);
    // Stated rules wait by their own windows; the state reports only the rules in force.
    harness.nowMillis += 5_001 - WINDOW_MILLIS;
    expect(harness.machine.restoredMillis(harness.nowMillis)).toBe(0);
    const stated = harness.one({ userId: 'ada', ruleId: '5/60000ms' });
    expect(stated).toMatchObject({ allowed: false, restoredMillis: expect.any(Number) as number });
    expect(harness.one({ userId: 'ada', ruleId: '5/60000ms+2' })).toMatchObject({
      allowed: false,
      restoredMillis: expect.any(Number) as number,
    });
  });

  it('is reported with the timestamp that a caller has to wait for', () => {
    const harness = harnessWith({});
    lose(harness);
    begin(harness);
    const aheadMillis = MAX_AHEAD_MILLIS_DEFAULT + LATE_MILLIS;
    harness.nowMillis += WINDOW_MILLIS;
    const { nowMillis } = harness;
    const denial = harness.one({ userId: 'ada', timestampMillis: nowMillis });
    expect(denial).toMatchObject({ restoredMillis: aheadMillis, retryAfterMillis: aheadMillis });
    // Requests without a timestamp have nothing to wait for, and the state reports their wait.
    expect(harness.allows('grace')).toBe(true);
    expect(harness.machine.restoredMillis(nowMillis)).toBe(0);
  });

  it('is over a window after the first leader said that the group runs; later leaders change nothing', () => {
    const harness = harnessWith({ clock: 'cluster' });
    lose(harness);
    begin(harness);
    const hash = harness.machine.hash();
    harness.nowMillis += WINDOW_MILLIS;
    begin(harness);
    expect(harness.machine.hash()).toBe(hash);
    expect(harness.allows('ada')).toBe(true);
  });

  it('saturates every kind of limit for as long as its grants count', () => {
    const reaches: readonly [Partial<Rule>, number][] = [
      [{}, WINDOW_MILLIS],
      [{ granularityMillis: 100 }, WINDOW_MILLIS + 100],
      [{ meter: 'slidingCounter' }, 2 * WINDOW_MILLIS],
      [{ meter: 'fixedWindow' }, WINDOW_MILLIS],
      [{ meter: 'tokenBucket', burst: 30 }, 10 * WINDOW_MILLIS],
      [{ meter: 'leakyBucket', burst: 3, queue: 3 }, 2 * WINDOW_MILLIS],
    ];
    for (const [rule, reachMillis] of reaches) {
      const harness = harnessWith({ clock: 'cluster', ...rule });
      lose(harness);
      begin(harness);
      harness.nowMillis += reachMillis - 1;
      expect([rule, harness.allows('ada')]).toEqual([rule, false]);
      harness.nowMillis += 1;
      expect([rule, harness.allows('ada')]).toEqual([rule, true]);
    }
  });

  it('saturates stated rules, and rules that come later', () => {
    const harness = harnessWith({ clock: 'cluster' });
    lose(harness);
    begin(harness);
    harness.nowMillis += WINDOW_MILLIS;
    expect(harness.one({ userId: 'ada', ruleId: '5/5000ms' }).allowed).toBe(false);
    harness.nowMillis += 5_001 - WINDOW_MILLIS;
    expect(harness.one({ userId: 'ada', ruleId: '5/5000ms' }).allowed).toBe(true);
  });

  it('makes callers with timestamps wait too, and then use later ones than any that was admitted', () => {
    const harness = harnessWith({});
    harness.allows('ada', START);
    lose(harness);
    const wallMillis = START + 3_600_000;
    begin(harness, wallMillis);
    expect(harness.allows('ada', wallMillis + 59_000)).toBe(false);
    const firstMillis = wallMillis + MAX_AHEAD_MILLIS_DEFAULT + LATE_MILLIS + WINDOW_MILLIS;
    expect(harness.allows('ada', firstMillis)).toBe(false);
    harness.nowMillis += WINDOW_MILLIS;
    expect(harness.one({ userId: 'ada', timestampMillis: firstMillis - 1 })).toMatchObject({
      allowed: false,
      retryAfterMillis: 1,
    });
    expect(harness.allows('ada', firstMillis)).toBe(true);
    // In group time one window is enough.
    expect(harness.allows('grace')).toBe(true);
  });

  it('makes timestamps of a far epoch wait as long as their keys are remembered', () => {
    const harness = harnessWith({});
    expect(harness.allows('ada', 17)).toBe(true);
    lose(harness);
    begin(harness);
    harness.nowMillis += FAR_EPOCH_HORIZON_MILLIS - 1;
    expect(harness.allows('ada', 5_000)).toBe(false);
    harness.nowMillis += 1;
    expect(harness.allows('ada', 5_000)).toBe(true);
  });

  it('remembers no request id, because its grant may have been refunded since', () => {
    const harness = harnessWith({ clock: 'cluster' });
    const request = { userId: 'ada', requestId: 'r1' };
    expect(harness.one(request).allowed).toBe(true);
    lose(harness);
    begin(harness);
    expect(harness.machine.isRemembered(request)).toBe(false);
    expect(harness.one(request).allowed).toBe(false);
    expect(harness.one({ ask: 'refund', ...request })).toMatchObject({ refund: { refunded: false } });
    harness.nowMillis += WINDOW_MILLIS;
    const again = harness.one(request);
    expect(again.allowed).toBe(true);
    expect(harness.one(request)).toEqual(again);
    // The old grant is forgotten with the next grants, although its horizon is far away.
    expect(harness.machine.stats().requestIds).toBe(1);
  });

  it('is in snapshots, before and after the group runs again', () => {
    const harness = harnessWith({ clock: 'cluster' });
    harness.one({ userId: 'ada', requestId: 'r1' });
    lose(harness);
    const open = restored(harness);
    expect(open.machine.hash()).toBe(harness.machine.hash());
    expect([open.machine.awaitsHistory, open.allows('ada')]).toEqual([true, false]);
    begin(harness);
    const begun = restored(harness);
    expect(begun.machine.hash()).toBe(harness.machine.hash());
    begun.nowMillis += WINDOW_MILLIS - 1;
    expect([begun.machine.awaitsHistory, begun.allows('ada')]).toEqual([false, false]);
    begun.nowMillis += 1;
    expect(begun.allows('ada')).toBe(true);
    expect(begun.one({ userId: 'ada', requestId: 'r1' }).decided.index).toBe(begun.index);
  });
});
