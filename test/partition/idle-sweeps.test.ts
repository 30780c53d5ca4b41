/**
 * The sweeps of a leader without requests: every idle item is forgotten, in few entries, and none is written
 * in vain.
 */
import { describe, expect, it } from 'vitest';
import { decodeCommand } from '../../src/limiter/log/command.ts';
import type { Rule } from '../../src/api/rule.ts';
import { IDLE_CHECKS } from '../../src/partition/capacity-watch.ts';
import { GATHER_MILLIS, IDLE_SWEEP_MILLIS, QUIET_MILLIS } from '../../src/partition/idle-sweeps.ts';
import { FakeDriver, restoreAt, tableOf } from './fake-driver.ts';

const HOUR_MILLIS = 3_600_000;
const DAY_MILLIS = 24 * HOUR_MILLIS;

/** The commands that are proposed while this much time passes, with their times in milliseconds from now. */
function pass(driver: FakeDriver, millis: number, commits = true): { type: string; atMillis: number }[] {
  const proposed: { type: string; atMillis: number }[] = [];
  const start = driver.now;
  for (driver.requested = 0; driver.now < start + millis;) {
    driver.now += 50;
    driver.partition.housekeeping.check(IDLE_CHECKS);
    // The requested turn. No other code requests any.
    if (driver.requested === 0) continue;
    driver.requested = 0;
    const entry = driver.turn();
    if (entry !== undefined)
      proposed.push({ type: decodeCommand(entry.data).type, atMillis: driver.now - start });
    if (commits) driver.commitAll();
  }
  return proposed;
}

function leading(...rules: Partial<Rule>[]): FakeDriver {
  return FakeDriver.leading({ table: tableOf(1, ...rules) });
}

function grant(driver: FakeDriver, users: number, ruleId?: string): void {
  for (let i = 0; i < users; i += 1) driver.ask({ userId: `user${i}`, ruleId });
  for (let turns = 0; turns <= users / 4_096; turns += 1) driver.turn();
  driver.commitAll();
}

describe('a partition without requests', () => {
  it('forgets every key that is idle, with sweeps alone, and then proposes nothing', () => {
    const driver = leading({ windowMillis: 2_000 });
    grant(driver, 20_000);
    expect(driver.partition.stateBytes).toBeGreaterThan(2_000_000);
    const proposed = pass(driver, 60_000);
    expect(driver.partition.stateBytes).toBe(0);
    expect(new Set(proposed.map(({ type }) => type))).toEqual(new Set(['sweep']));
    expect(proposed[0]!.atMillis).toBeGreaterThanOrEqual(2_000);
    // A sweep forgets 1,024 keys. None is proposed after the last key is gone.
    expect(proposed).toHaveLength(Math.ceil(20_000 / 1_024));
    expect(proposed.at(-1)!.atMillis).toBeLessThan(20_000);
    expect(pass(driver, HOUR_MILLIS)).toEqual([]);
  });

  it('checks expired request ids about once, and sweeps until all of them are gone', () => {
    const driver = leading({ windowMillis: 2_000 });
    for (let i = 0; i < 6_000; i += 1) driver.ask({ userId: `user${i}`, requestId: `id${i}` });
    for (let turns = 0; turns < 3; turns += 1) driver.turn();
    driver.commitAll();
    pass(driver, 60_000);
    expect(driver.partition.stats()).toMatchObject({ keys: 0, requestIds: 6_000 });
    let checks = 0;
    const { housekeeping } = driver.partition;
    const check = housekeeping.check.bind(housekeeping);
    housekeeping.check = (checksMax) => {
      const peeked = check(checksMax);
      checks += peeked;
      return peeked;
    };
    expect(pass(driver, HOUR_MILLIS)).toHaveLength(Math.ceil(6_000 / 1_024));
    expect(driver.partition.stateBytes).toBe(0);
    expect(checks).toBeLessThan(7_000);
  });

  it('proposes at most one sweep in each pause', () => {
    const driver = leading({ windowMillis: 2_000 });
    grant(driver, 10_000);
    const times = pass(driver, 60_000).map(({ atMillis }) => atMillis);
    expect(times.length).toBeGreaterThan(5);
    for (const [i, millis] of times.slice(1).entries())
      expect(millis - times[i]!).toBeGreaterThanOrEqual(IDLE_SWEEP_MILLIS);
  });

  it('proposes nothing while all its keys are live, or if it has none', () => {
    const driver = leading({ windowMillis: DAY_MILLIS });
    expect(pass(driver, HOUR_MILLIS)).toEqual([]);
    grant(driver, 5_000);
    const { stateBytes } = driver.partition;
    expect(pass(driver, 2 * HOUR_MILLIS)).toEqual([]);
    expect(driver.partition.stateBytes).toBe(stateBytes);
  });

  it('checks live keys once, and not again before the first of them can be idle', () => {
    const driver = leading({ windowMillis: HOUR_MILLIS });
    grant(driver, 1_000);
    driver.now += QUIET_MILLIS;
    const { housekeeping } = driver.partition;
    expect(housekeeping.check(600)).toBe(600);
    expect(housekeeping.check(600)).toBe(400);
    for (let i = 0; i < 100; i += 1) {
      driver.now += 30_000;
      expect(housekeeping.check(600)).toBe(0);
    }
    driver.now += HOUR_MILLIS;
    expect(housekeeping.check(600)).toBe(600);
  });

  it('forgets idle keys between live ones', () => {
    const driver = leading({ windowMillis: DAY_MILLIS }, { windowMillis: 2_000 });
    grant(driver, 3_000);
    const live = driver.partition.stateBytes;
    grant(driver, 3_000, 'rule1');
    const proposed = pass(driver, 2 * GATHER_MILLIS);
    expect(driver.partition.stateBytes).toBe(live);
    expect(proposed.length).toBeLessThan(10);
    expect(pass(driver, HOUR_MILLIS)).toEqual([]);
  });

  it('wakes up rarely if one key after the other becomes idle', () => {
    const driver = leading({ windowMillis: HOUR_MILLIS });
    for (let i = 0; i < 600; i += 1) {
      driver.decide(`user${i}`);
      driver.now += 1_000;
    }
    const proposed = pass(driver, 2 * HOUR_MILLIS);
    expect(driver.partition.stateBytes).toBe(0);
    expect(proposed.length).toBeLessThanOrEqual(2 + 600_000 / GATHER_MILLIS);
  });

  it('forgets request ids and ended blocks as well', () => {
    const driver = leading({ windowMillis: 1_000 });
    driver.decide({ userId: 'ada', requestId: 'one' });
    const block = { type: 'block', isBlocked: true, durationMillis: 5_000 } as const;
    driver.decide({ ask: 'customer', userId: 'bob', action: block });
    pass(driver, 2 * DAY_MILLIS);
    expect(driver.partition.stats()).toEqual({ keys: 0, grants: 0, requestIds: 0, customers: 0 });
  });

  it('keeps a block without an end', () => {
    const driver = leading({ windowMillis: 1_000 });
    driver.decide({ ask: 'customer', userId: 'bob', action: { type: 'block', isBlocked: true } });
    expect(pass(driver, DAY_MILLIS)).toEqual([]);
  });
});

describe('sweeps that no request causes', () => {
  it('wait while entries come: grants sweep themselves', () => {
    const driver = leading({ windowMillis: 1_000 });
    grant(driver, 2_000);
    for (let i = 0; i < 100; i += 1) {
      expect(pass(driver, QUIET_MILLIS - 100)).toEqual([]);
      driver.decide('ada');
    }
    expect(pass(driver, 10_000).length).toBeGreaterThan(0);
  });

  it('come also between rare requests', () => {
    const driver = leading({ windowMillis: 1_000 });
    grant(driver, 10_000);
    for (let i = 0; i < 60; i += 1) {
      pass(driver, 2 * QUIET_MILLIS);
      driver.decide('ada');
    }
    expect(driver.partition.stats().keys).toBe(1);
  });

  it('are one at a time if nothing is committed', () => {
    const driver = leading({ windowMillis: 1_000 });
    grant(driver, 5_000);
    expect(pass(driver, 60_000, false).length).toBeLessThan(15);
    driver.commitAll();
    pass(driver, 60_000);
    expect(driver.partition.stateBytes).toBe(0);
  });

  it('are proposed by the leader only, and a new leader begins by itself', () => {
    const driver = leading({ windowMillis: 1_000 });
    grant(driver, 100);
    driver.follow();
    expect(pass(driver, 60_000)).toEqual([]);
    driver.lead();
    driver.commitAll();
    expect(pass(driver, 60_000)).toHaveLength(1);
    expect(driver.partition.stateBytes).toBe(0);
  });

  it('stop on a disk that is nearly full', () => {
    const driver = leading({ windowMillis: 1_000 });
    grant(driver, 100);
    driver.partition.setLowDisk(true);
    expect(pass(driver, 60_000)).toEqual([]);
    driver.partition.setLowDisk(false);
    expect(pass(driver, 60_000)).toHaveLength(1);
  });

  it('survey the state that was installed last', () => {
    const other = leading({ windowMillis: 1_000 });
    grant(other, 3_000);
    const driver = leading({ windowMillis: 1_000 });
    grant(driver, 10);
    driver.now += QUIET_MILLIS;
    driver.partition.housekeeping.check(5);
    restoreAt(driver, { index: 100, term: driver.term }, other);
    driver.commit = 100;
    pass(driver, 60_000);
    expect(driver.partition.stateBytes).toBe(0);
  });
});
