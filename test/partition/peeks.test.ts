/** Which node may answer a peek, and that a peek changes nothing. */
import { describe, expect, it } from 'vitest';
import { FakeDriver, tableOf } from './fake-driver.ts';

const PEEK = { ask: 'peek', userId: 'ada' } as const;

describe('a peek', () => {
  it('is answered by the leader from its state, without an entry', () => {
    const driver = FakeDriver.leading();
    driver.decide('ada');
    const { lastIndex } = driver;
    driver.now += 100;
    expect(driver.ask(PEEK)).toMatchObject([
      {
        kind: 'keyStatus',
        keyStatus: { limits: [{ remaining: 2, resetMillis: 901 }], decided: { index: lastIndex } },
      },
    ]);
    expect(driver.turn()).toBeUndefined();
    expect([driver.lastIndex, driver.partition.waitingCount]).toEqual([lastIndex, 0]);
  });

  it('waits until a quorum confirms its leader, and reports the state at that time', () => {
    const driver = FakeDriver.leading();
    driver.confirmsReads = false;
    const answers = driver.ask(PEEK);
    driver.decide('ada');
    expect([answers, driver.partition.waitingCount]).toEqual([[], 1]);
    for (const read of driver.reads) read(driver.commit);
    expect(answers).toMatchObject([{ kind: 'keyStatus', keyStatus: { limits: [{ remaining: 2 }] } }]);
    expect(driver.partition.waitingCount).toBe(0);
  });

  it('gets no answer from a leader that no quorum confirms, and is sent to another one', () => {
    const driver = FakeDriver.leading();
    driver.confirmsReads = false;
    const answers = driver.ask(PEEK);
    for (const read of driver.reads) read(undefined);
    expect(answers).toEqual([{ kind: 'notLeader', leader: 0, term: driver.term }]);
  });

  it('of an unknown rule is invalid', () => {
    const answers = FakeDriver.leading().ask({ ...PEEK, ruleId: 'none' });
    expect(answers).toEqual([{ kind: 'invalid', field: 'rule', message: "there is no rule 'none'" }]);
  });

  it('is sent to the leader by a node that does not lead', () => {
    const driver = FakeDriver.leading();
    driver.follow(3);
    expect(driver.ask(PEEK)).toEqual([{ kind: 'notLeader', leader: 3, term: driver.term }]);
  });

  it('waits until the entries of former leaders are applied', () => {
    const driver = FakeDriver.leading({ table: tableOf(1, { limit: 1 }) });
    // Granted by a former leader, committed, but not applied here.
    driver.ask('ada');
    driver.turn();
    driver.follow();
    driver.lead();
    const answers = driver.ask(PEEK);
    expect(answers).toEqual([]);
    driver.commitAll();
    expect(answers).toMatchObject([{ kind: 'keyStatus', keyStatus: { limits: [{ remaining: 0 }] } }]);
  });

  it('is answered with the new leader if this one loses its leadership before', () => {
    const driver = FakeDriver.leading();
    driver.lead();
    const answers = driver.ask(PEEK);
    driver.follow(3);
    expect(answers).toMatchObject([{ kind: 'notLeader', leader: 3 }]);
  });

  it('waits for the first rules to be applied', () => {
    const driver = new FakeDriver();
    driver.lead();
    const answers = driver.ask(PEEK);
    driver.commitAll();
    expect(answers).toEqual([]);
    driver.turn();
    driver.commitAll();
    expect(answers).toMatchObject([{ kind: 'keyStatus' }]);
  });
});
