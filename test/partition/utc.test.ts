/** A leader logs the lag of group time behind the wall clocks of a majority if it exceeds a second. */
import { describe, expect, it } from 'vitest';
import { decodeCommand } from '../../src/limiter/log/command.ts';
import { UTC_LAG_MILLIS_MAX } from '../../src/partition/own-proposals.ts';
import { FakeDriver, START } from './fake-driver.ts';

/** The leader's proposals after it got this time. */
function proposedAt(driver: FakeDriver, utcMillis: number): unknown {
  driver.requested = 0;
  driver.partition.followUtc(utcMillis);
  const entry = driver.turn();
  if (driver.requested !== (entry === undefined ? 0 : 1))
    throw new Error('the partition must ask for a turn exactly if it proposes');
  return entry && decodeCommand(entry.data);
}

describe('a leader', () => {
  it('logs the UTC offset once when the log is more than a second behind', () => {
    const driver = FakeDriver.leading();
    driver.now = 5_000;
    const utcMillis = START + 5_000;
    for (const lag of [-1e9, 0, UTC_LAG_MILLIS_MAX])
      expect(proposedAt(driver, utcMillis + lag)).toBeUndefined();
    const said = { type: 'utc', aheadMillis: UTC_LAG_MILLIS_MAX + 1 };
    expect(proposedAt(driver, utcMillis + UTC_LAG_MILLIS_MAX + 1.75)).toEqual(said);
    driver.commitAll();
    expect(driver.partition.utcMillis).toBe(utcMillis + UTC_LAG_MILLIS_MAX + 1);
    for (const lag of [0, 2 * UTC_LAG_MILLIS_MAX + 1])
      expect(proposedAt(driver, utcMillis + lag)).toBeUndefined();
    expect(proposedAt(driver, utcMillis + 2 * UTC_LAG_MILLIS_MAX + 2)).toMatchObject({ type: 'utc' });
  });

  it('tries again a second later if its proposal was refused', () => {
    const driver = FakeDriver.leading();
    driver.refusesNext = true;
    driver.partition.followUtc(START + 9_000);
    expect(driver.turn()).toBeUndefined();
    expect(driver.turn()).toBeUndefined();
    expect(proposedAt(driver, START + 10_000)).toEqual({ type: 'utc', aheadMillis: 10_000 });
  });

  it('never logs a time that no wall clock can show', () => {
    const driver = FakeDriver.leading();
    for (const utcMillis of [Infinity, Number.MAX_SAFE_INTEGER])
      expect(proposedAt(driver, utcMillis)).toBeUndefined();
  });

  it('continues with the waiting requests', () => {
    const driver = FakeDriver.leading();
    const answers = driver.ask('ada');
    driver.partition.followUtc(START + 9_000);
    expect(decodeCommand(driver.turn()!.data).type).toBe('utc');
    driver.requested = 0;
    expect(decodeCommand(driver.turn()!.data).type).toBe('allow');
    driver.commitAll();
    expect(answers).toMatchObject([{ kind: 'decision' }]);
  });

  it('logs nothing close to a full disk, nor before it has applied the entries of former leaders', () => {
    const driver = FakeDriver.leading();
    driver.partition.setLowDisk(true);
    expect(proposedAt(driver, START + 9_000)).toBeUndefined();
    driver.partition.setLowDisk(false);
    driver.follow();
    driver.lead();
    expect(proposedAt(driver, START + 9_000)).toBeUndefined();
    driver.commitAll();
    expect(proposedAt(driver, START + 9_000)).toMatchObject({ type: 'utc' });
  });
});

describe('a follower', () => {
  it('proposes nothing', () => {
    const driver = FakeDriver.leading();
    driver.follow();
    expect(proposedAt(driver, START + 9_000)).toBeUndefined();
  });
});
