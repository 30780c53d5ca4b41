/** Every queue has a bound and every request a deadline; requests beyond them are refused. */
import { describe, expect, it } from 'vitest';
import { allowed, FakeDriver, tableOf, usersOf } from './fake-driver.ts';

describe('the bounds of a partition', () => {
  it('a full waiting queue refuses requests as overloaded', () => {
    const driver = FakeDriver.leading({ partition: { pendingMax: 3 } });
    const answers = ['a', 'b', 'c', 'd'].map((user) => driver.ask(user));
    expect(answers[3]).toEqual([{ kind: 'unavailable', reason: 'overloaded', proposed: false }]);
    driver.turn();
    driver.commitAll();
    expect(answers.map(([answer]) => allowed(answer))).toEqual([true, true, true, undefined]);
  });

  it('with too many requests in the log, others are refused as overloaded until some are applied', () => {
    const driver = FakeDriver.leading({ partition: { inflightMax: 3 } });
    for (const user of ['a', 'b', 'c']) driver.ask(user);
    driver.turn();
    expect(driver.ask('d')).toEqual([{ kind: 'unavailable', reason: 'overloaded', proposed: false }]);
    driver.commitAll();
    expect(allowed(driver.decide('d'))).toBe(true);
  });

  it('requests whose proposal raft refuses are answered as overloaded, and charge nothing', () => {
    const driver = FakeDriver.leading();
    const answers = driver.ask({ userId: 'ada', requestId: 'r' });
    driver.refusesNext = true;
    driver.turn();
    expect(answers).toEqual([{ kind: 'unavailable', reason: 'overloaded', proposed: false }]);
    expect(driver.partition.waitingCount).toBe(0);
    expect(allowed(driver.decide({ userId: 'ada', requestId: 'r' }))).toBe(true);
  });

  it('a request whose deadline has passed is not proposed', () => {
    const driver = FakeDriver.leading();
    const late = driver.ask('ada', 10);
    const timely = driver.ask('bob', 100);
    driver.now += 10;
    const entry = driver.turn();
    expect(late).toEqual([{ kind: 'unavailable', reason: 'deadline', proposed: false }]);
    expect(usersOf(entry)).toEqual(['bob']);
    driver.commitAll();
    expect(timely.map(allowed)).toEqual([true]);
  });

  it('a request that would be too late by recent commit times is not proposed', () => {
    const driver = FakeDriver.leading();
    for (const [i, millis] of [90, 50, 80, 70, 60, 90, 90, 90].entries()) {
      driver.ask(`user ${i}`);
      driver.turn();
      driver.now += millis;
      driver.commitAll();
    }
    driver.ask('ada');
    driver.turn();
    const late = driver.ask('bob', 50);
    const timely = driver.ask('cyd', 51);
    driver.turn();
    expect(late).toEqual([{ kind: 'unavailable', reason: 'deadline', proposed: false }]);
    driver.commitAll();
    expect(timely.map(allowed)).toEqual([true]);
  });

  it('one request is always proposed, even if commits took long', () => {
    const driver = FakeDriver.leading();
    for (let i = 0; i < 8; i += 1) {
      driver.ask(`user ${i}`);
      driver.turn();
      driver.now += 900;
      driver.commitAll();
    }
    const first = driver.ask('bob', 100);
    driver.turn();
    const second = driver.ask('cyd', 100);
    driver.turn();
    expect(second).toEqual([{ kind: 'unavailable', reason: 'deadline', proposed: false }]);
    // The disk is fast again: one commit is enough to learn that.
    driver.now += 5;
    driver.commitAll();
    expect(first.map(allowed)).toEqual([true]);
    driver.ask('dan', 100);
    driver.turn();
    const fourth = driver.ask('eve', 100);
    driver.turn();
    driver.commitAll();
    expect(fourth.map(allowed)).toEqual([true]);
  });

  it.each(['in that term', 'in the new one'])(
    'the commit times of an earlier term do not count in a new one, if the entries are committed %s',
    (when) => {
      const driver = FakeDriver.leading();
      for (let i = 0; i < 8; i += 1) {
        driver.ask(`user ${i}`);
        driver.turn();
      }
      driver.now += 900;
      if (when === 'in that term') driver.commitAll();
      driver.follow(1);
      driver.lead();
      driver.commitAll();
      driver.ask('bob');
      driver.turn();
      const answers = driver.ask('cyd', 100);
      driver.turn();
      driver.commitAll();
      expect(answers.map(allowed)).toEqual([true]);
    },
  );

  it('nothing is proposed if all have expired', () => {
    const driver = FakeDriver.leading();
    driver.ask('ada', 10);
    driver.now += 11;
    const { lastIndex } = driver;
    expect(driver.turn()).toBeUndefined();
    expect(driver.lastIndex).toBe(lastIndex);
  });

  it('close to a full disk nothing is proposed, and quick denials are still given', () => {
    const driver = FakeDriver.leading({ table: tableOf(1, { limit: 1 }) });
    driver.decide('ada');
    driver.partition.setLowDisk(true);
    expect(driver.ask('bob')).toEqual([{ kind: 'unavailable', reason: 'low_disk', proposed: false }]);
    expect(allowed(driver.ask('ada')[0])).toBe(false);
    driver.partition.setLowDisk(false);
    expect(allowed(driver.decide('bob'))).toBe(true);
  });
});

/** The duration of each entry. */
function slowly(driver: FakeDriver, millis: number, entries: number): void {
  for (let i = 0; i < entries; i += 1) {
    driver.ask(`user ${i}`);
    driver.turn();
    driver.now += millis;
    driver.commitAll();
  }
}

describe('a log in which even the quickest entry takes long', () => {
  it('accepts as many requests as fit into one entry, and no more', () => {
    const driver = FakeDriver.leading({ partition: { batchMax: 2 } });
    slowly(driver, 300, 40);
    const answers = ['a', 'b', 'c'].map((user) => driver.ask(user));
    expect(answers.map((each) => each.length)).toEqual([0, 0, 1]);
    expect(answers[2]).toEqual([{ kind: 'unavailable', reason: 'overloaded', proposed: false }]);
    driver.turn();
    driver.commitAll();
    expect(answers.slice(0, 2).map(([answer]) => allowed(answer))).toEqual([true, true]);
  });

  it('still denies at once, and answers retries of waiting requests', () => {
    const driver = FakeDriver.leading({
      partition: { batchMax: 1 },
      table: tableOf(1, { limit: 1, windowMillis: 3_600_000 }),
    });
    slowly(driver, 300, 40);
    const waiting = driver.ask({ userId: 'a', requestId: 'r' });
    const repeat = driver.ask({ userId: 'a', requestId: 'r' });
    expect(driver.ask('b')).toEqual([{ kind: 'unavailable', reason: 'overloaded', proposed: false }]);
    expect(driver.ask('user 0').map(allowed)).toEqual([false]);
    driver.turn();
    driver.commitAll();
    expect([waiting, repeat].map(([answer]) => allowed(answer))).toEqual([true, true]);
  });

  it('accepts everything again when entries are fast', () => {
    const driver = FakeDriver.leading({ partition: { batchMax: 2 } });
    slowly(driver, 300, 40);
    slowly(driver, 20, 300);
    const answers = Array.from({ length: 50 }, (_, i) => driver.ask(`other ${i}`));
    expect(answers.flat()).toEqual([]);
  });
});
