import { describe, expect, it } from 'vitest';
import type { Operation } from './history.ts';
import { answer, found, violations } from './judged.ts';

const event = (timeMillis: number, more: Partial<Operation>): Operation =>
  answer(timeMillis, {
    rule: 'event',
    limit: 1,
    windowMillis: 100,
    timestampMillis: timeMillis,
    position: 0,
    ...more,
  });
/** The same, but the machine's time and the caller's timestamp differ. */
const eventAt = (millis: number, stamp: number, more: Partial<Operation> = {}): Operation =>
  event(stamp, {
    index: millis,
    requestId: `e${millis}`,
    invokeNanos: millis * 1e6,
    completeNanos: millis * 1e6,
    ...more,
  });

describe('requests with timestamps of their callers', () => {
  it("timestamps of the caller are judged in the caller's time, without widening", () => {
    const first = answer(10, { timestampMillis: 1_000, timeMillis: 1_000 });
    expect(violations([first, answer(11, { timestampMillis: 1_100, timeMillis: 1_100 })])).toEqual([]);
    expect(violations([first, answer(11, { timestampMillis: 1_099, timeMillis: 1_099 })])).toContain(
      'certificate',
    );
  });

  it('a denial is judged at the time of its caller, and no user may be held back without a reason', () => {
    const first = event(10, { index: 1 });
    const denied = { allowed: false, status: 429, remaining: 0, index: 2 } as const;
    expect(found(first, event(109, denied))).toEqual([]);
    expect(found(first, event(110, denied))).toEqual([expect.stringContaining('at most 0 of 1 were spent')]);
    // A late timestamp is judged at the newest stamp.
    expect(found(first, event(10, { ...denied, timestampMillis: 5 }))).toEqual([]);
    const soon = { ...denied, invokeNanos: first.invokeNanos + 1e6, completeNanos: first.invokeNanos + 2e6 };
    expect(found(first, event(200, { ...soon, timestampMillis: 150 }))).toEqual([
      expect.stringContaining('at most 0 of 1 were spent'),
    ]);
  });

  it('stamps of one user never decrease, and a stamp is later than the timestamp only after a grant with a later stamp', () => {
    const first = event(500, { index: 1 });
    expect(found(first, event(300, { index: 2, timestampMillis: 300 }))).toEqual(
      expect.arrayContaining([expect.stringContaining('stamped before an earlier grant at 500 ms')]),
    );
    expect(found(event(500, { index: 1, timestampMillis: 400 }))).toEqual([
      expect.stringContaining('judged later than its own time 400 without an earlier grant'),
    ]);
  });

  it('a denial behind the stamp of a caller does not reveal group time', () => {
    const first = event(50_000, { index: 1, invokeNanos: 1e6, completeNanos: 2e6 });
    const now = answer(3, { user: 'bob', index: 2, position: 0 });
    const held = {
      requestId: 'x',
      timestampMillis: null,
      allowed: false,
      status: 429,
      remaining: 0,
      index: 3,
    };
    expect(found(first, now, event(50_000, { ...held, invokeNanos: 4e6, completeNanos: 5e6 }))).toEqual([]);
  });
});

describe('a user with timestamps that was idle for a minute and then asks in another epoch,', () => {
  const DAYS_MILLIS = 86_400_000;
  const NOW_MILLIS = 100 * DAYS_MILLIS;
  /** A window in callers' time is not widened; a window in cluster time is. */
  const IDLE_MILLIS = 60_000 + 102;
  /** An answer that shows group time. */
  const clock = answer(1, { user: 'bob', timeMillis: NOW_MILLIS, position: 0 });
  const near = eventAt(10, NOW_MILLIS);
  const far = (millis: number, more?: Partial<Operation>): Operation => eventAt(millis, 5_000, more);
  const AFTER = 10 + IDLE_MILLIS;

  it('starts as a new user, once', () => {
    expect(violations([clock, near, far(AFTER)])).toEqual([]);
    // From then on the user is known for a day.
    expect(found(clock, near, far(AFTER), eventAt(AFTER + 1, 5_099))).toEqual([
      expect.stringContaining('1 of 1 were spent'),
    ]);
    const back = eventAt(AFTER + 10, NOW_MILLIS + AFTER);
    expect(violations([clock, near, far(AFTER), back])).toEqual([]);
    expect(found(clock, near, far(AFTER), back, far(AFTER + 10 + IDLE_MILLIS))).toEqual(
      expect.arrayContaining([expect.stringContaining('were spent')]),
    );
  });

  it('is no new user before the minute is over', () => {
    expect(violations([clock, near, far(AFTER - 7)])).toEqual(
      expect.arrayContaining(['certificate', 'linearizability-lenient']),
    );
  });

  it('is no new user if it had a grant in that epoch before', () => {
    const [first, second] = [far(5), far(AFTER)];
    expect(violations([clock, first, near, second])).toEqual(
      expect.arrayContaining(['certificate', 'linearizability-lenient']),
    );
  });

  it('is no new user if the timestamps are less than 31 days and a window before the first answer', () => {
    const epoch = NOW_MILLIS - 31 * DAYS_MILLIS;
    expect(found(clock, near, eventAt(AFTER, epoch - 102))).toEqual([]);
    expect(found(clock, near, eventAt(AFTER, epoch - 101))).not.toEqual([]);
    // No answer shows the group time at that moment.
    expect(found(near, far(AFTER))).not.toEqual([]);
  });

  it('is answered the remaining limit of a new user', () => {
    const of3 = { limit: 3 };
    const spent = eventAt(10, NOW_MILLIS, { ...of3, cost: 2, remaining: 1 });
    expect(found(clock, spent, far(AFTER, { ...of3, remaining: 2 }))).toEqual([]);
    expect(found(clock, spent, far(AFTER, { ...of3, remaining: 0 }))).not.toEqual([]);
  });
});
