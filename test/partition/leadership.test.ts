/** Tests the answers of waiting requests when a leader loses its leadership. */
import { describe, expect, it } from 'vitest';
import { allowed, FakeDriver, restoreAt } from './fake-driver.ts';

describe('losing the leadership', () => {
  it('fails requests that were not proposed, and leaves the proposed ones to the log', () => {
    const driver = FakeDriver.leading();
    const proposed = driver.ask('ada');
    driver.turn();
    const waiting = driver.ask('bob');
    driver.follow(2);
    expect(waiting).toEqual([{ kind: 'notLeader', leader: 2, term: driver.term }]);
    expect(proposed).toEqual([]);
    // The new leader has the entry, and commits it.
    driver.commitAll();
    expect(proposed.map(allowed)).toEqual([true]);
    expect(driver.partition.waitingCount).toBe(0);
  });

  it('and the replica with it, answers all requests as unknown: the new leader may hold the entry', () => {
    const driver = FakeDriver.leading();
    const answers = driver.ask('ada');
    driver.turn();
    driver.follow(2);
    driver.partition.dropped();
    expect(answers).toEqual([{ kind: 'unavailable', reason: 'unknown_outcome', proposed: true }]);
    expect(driver.partition.waitingCount).toBe(0);
  });

  it('answers the requests of an overwritten entry as never proposed', () => {
    const driver = FakeDriver.leading();
    const answers = [driver.ask('ada'), driver.ask({ userId: 'bob', requestId: 'r' })];
    driver.turn();
    driver.follow(2);
    driver.overwrite(1);
    for (const list of answers) {
      expect(list).toEqual([{ kind: 'unavailable', reason: 'no_leader', proposed: false }]);
    }
    expect(driver.partition.waitingCount).toBe(0);
  });

  it('answers the requests of an entry that a snapshot covers as unknown', () => {
    const driver = FakeDriver.leading();
    const answers = driver.ask('ada');
    const entry = driver.turn();
    const other = FakeDriver.leading();
    other.decide('ada');
    driver.follow(2);
    restoreAt(driver, { index: (entry?.index ?? 0) + 5, term: 9 }, other);
    expect(answers).toEqual([{ kind: 'unavailable', reason: 'unknown_outcome', proposed: true }]);
    expect(driver.partition.waitingCount).toBe(0);
    expect(driver.partition.stateHash()).toBe(other.partition.stateHash());
  });

  it.each([
    ['in its term has an unknown outcome: the new leader may hold it', 0, 'unknown_outcome', true],
    ['in a later term is lost: terms do not decrease along a log', 1, 'no_leader', false],
  ] as const)('an entry behind a snapshot that ends %s', (_, later, reason, proposed) => {
    const driver = FakeDriver.leading();
    driver.ask('ada');
    const covered = driver.turn();
    const answers = driver.ask('bob');
    driver.turn();
    const other = FakeDriver.leading();
    other.decide('ada');
    driver.follow(2);
    const { index = 0, term = 0 } = covered ?? {};
    restoreAt(driver, { index, term: term + later }, other);
    expect(answers).toEqual([{ kind: 'unavailable', reason, proposed }]);
    expect(driver.partition.waitingCount).toBe(0);
  });

  it('twice, with entries of both terms at the same index, answers every request and leaves every count at 0', () => {
    const driver = FakeDriver.leading();
    // Term 1: three entries that reach no other node.
    const first = [driver.ask('ada'), [], []];
    driver.turn();
    first[1] = driver.ask('bob');
    driver.turn();
    first[2] = driver.ask('cy');
    driver.turn();
    // Another leader's no-op replaces the first entry; then this node leads again and proposes the third.
    driver.follow(2);
    driver.overwrite(1);
    driver.lead();
    const second = driver.ask('dan');
    driver.commitAll();
    driver.turn();
    driver.commitAll();
    expect(second.map(allowed)).toEqual([true]);
    for (const list of first) expect(list).toHaveLength(1);
    expect(driver.partition.waitingCount).toBe(0);
  });

  it('does not make a retry wait for an attempt that the log has lost', () => {
    const driver = FakeDriver.leading();
    driver.ask('ada');
    driver.turn();
    const request = { userId: 'bob', requestId: 'r' };
    driver.ask(request);
    driver.turn();
    // Another leader replaced both entries by one; there is no entry at bob's index.
    driver.follow(2);
    driver.overwrite(1);
    driver.lead();
    driver.commitAll();
    const retry = driver.ask(request);
    driver.turn();
    driver.commitAll();
    expect(retry.map(allowed)).toEqual([true]);
  });

  it('reports the leader only when it changes or is elected again', () => {
    const driver = new FakeDriver();
    driver.follow(2);
    driver.partition.statusChanged({ isLeader: false, term: driver.term, leader: 2 });
    expect(driver.leaders).toEqual([2]);
    driver.follow(2);
    driver.lead();
    driver.follow(0);
    driver.follow(0);
    expect(driver.leaders).toEqual([2, 2, 1, 0]);
  });
});
