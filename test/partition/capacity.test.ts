/** At capacity, new users are refused, known ones served, and idle ones forgotten. */
import { describe, expect, it } from 'vitest';
import type { RuleTable } from '../../src/limiter/rules.ts';
import { allowed, FakeDriver, proposedTypes, tableOf } from './fake-driver.ts';

describe('at capacity', () => {
  const table: RuleTable = { ...tableOf(1, { limit: 100 }), partitionBytesMax: 4_096 };
  const refused = [{ kind: 'unavailable', reason: 'at_capacity', proposed: false }];

  function full(): FakeDriver {
    const driver = FakeDriver.leading({ table });
    for (let i = 0; i < 200; i += 1) driver.decide(`user${i}`);
    driver.commitAll();
    return driver;
  }

  it('new users and new request ids are refused before the log, and known users are served', () => {
    const driver = full();
    const { lastIndex } = driver;
    expect(driver.ask('stranger')).toEqual(refused);
    expect(driver.ask({ userId: 'user1', requestId: 'new' })).toEqual(refused);
    expect(driver.lastIndex).toBe(lastIndex);
    expect(allowed(driver.decide('user1'))).toBe(true);
    expect(driver.partition.stateBytes).toBeLessThanOrEqual(4_096);
    expect(driver.refused).toBeGreaterThan(100);
  });

  it('the log refuses new users when many requests come at once', () => {
    const driver = FakeDriver.leading({ table });
    const answers = Array.from({ length: 100 }, (_, i) => driver.ask(`user${i}`));
    driver.turn();
    driver.commitAll();
    const granted = answers.filter(([answer]) => allowed(answer) === true);
    expect(granted).toHaveLength(34);
    // The request is in the log, but was not charged.
    expect(answers[99]).toEqual([{ kind: 'unavailable', reason: 'at_capacity', proposed: true }]);
    expect(driver.partition.stateBytes).toBeLessThanOrEqual(4_096);
  });

  it('sweeps forget idle keys, although no request is granted', () => {
    const driver = full();
    driver.now += 1_500;
    driver.requested = 0;
    expect(driver.ask('stranger')).toEqual(refused);
    expect(driver.requested).toBe(1);
    expect(proposedTypes(driver)).toEqual(['sweep']);
    driver.commitAll();
    expect(driver.partition.stateBytes).toBe(0);
    expect(allowed(driver.decide('stranger'))).toBe(true);
  });

  it('sweeps are few, and fewer when there is nothing to forget', () => {
    const driver = full();
    let sweeps = 0;
    for (let millis = 0; millis < 60_000; millis += 10) {
      driver.now += 10;
      // They keep asking, so they are not idle.
      if (millis % 500 === 0) for (let i = 0; i < 40; i += 1) driver.decide(`user${i}`);
      driver.ask('stranger');
      sweeps += proposedTypes(driver).filter((type) => type === 'sweep').length;
      driver.commitAll();
    }
    expect(sweeps).toBeGreaterThan(10);
    expect(sweeps).toBeLessThan(40);
  });

  it('a sweep whose proposal was refused is proposed again', () => {
    const driver = full();
    driver.now += 1_500;
    driver.ask('stranger');
    driver.refusesNext = true;
    expect(driver.turn()).toBeUndefined();
    driver.now += 200;
    driver.ask('stranger');
    expect(proposedTypes(driver)).toEqual(['sweep']);
  });

  it('close to a full disk nothing is swept, because a sweep takes log space, too', () => {
    const driver = full();
    driver.now += 1_500;
    driver.partition.setLowDisk(true);
    driver.ask('stranger');
    driver.partition.limitRoom('full');
    expect(proposedTypes(driver)).toEqual([]);
    driver.partition.setLowDisk(false);
    driver.partition.limitRoom('full');
    expect(proposedTypes(driver)).toEqual(['sweep']);
  });

  it('the answers are the same, whether this node or another replica is full', () => {
    const driver = FakeDriver.leading();
    driver.decide('ada');
    driver.partition.limitRoom('full');
    expect(driver.ask('stranger')).toEqual(refused);
    expect(allowed(driver.decide('ada'))).toBe(true);
    driver.now += 1;
    driver.partition.limitRoom('exhausted');
    expect(driver.ask('ada')).toEqual(refused);
    driver.partition.limitRoom('free');
    expect(allowed(driver.decide('stranger'))).toBe(true);
  });

  it('a full node also sweeps partitions without requests', () => {
    const driver = FakeDriver.leading();
    driver.decide('ada');
    driver.now += 1_500;
    driver.partition.limitRoom('full');
    expect(proposedTypes(driver)).toEqual(['sweep']);
    driver.commitAll();
    expect(driver.partition.stateBytes).toBe(0);
    driver.now += 10_000;
    driver.partition.limitRoom('full');
    expect(proposedTypes(driver)).toEqual([]);
  });
});
