/** The answers of a leader, and when it gives them. */
import type { AllowRequest } from '../../src/api/request.ts';
import { describe, expect, it } from 'vitest';
import { decodeCommand } from '../../src/limiter/log/command.ts';
import type { Answer } from '../../src/api/user-request.ts';
import { allowed, FakeDriver, START, tableOf } from './fake-driver.ts';

describe('decisions', () => {
  it('follow the order of the log: granted up to the limit, then denied, then granted when the window has passed', () => {
    const driver = FakeDriver.leading();
    const answers = [1, 2, 3, 4].map(() => allowed(driver.decide('ada')));
    expect(answers).toEqual([true, true, true, false]);
    driver.now += 1_002;
    expect(allowed(driver.decide('ada'))).toBe(true);
  });

  it('are answered only when the entry is applied, and report its position in the log', () => {
    const driver = FakeDriver.leading();
    const answers = driver.ask('ada');
    const entry = driver.turn();
    expect(answers).toEqual([]);
    driver.commitAll();
    expect(answers).toMatchObject([
      { kind: 'decision', decision: { allowed: true, decided: { term: entry?.term, index: entry?.index } } },
    ]);
  });

  it('of one turn are in one entry', () => {
    const driver = FakeDriver.leading();
    const answers = ['ada', 'bob', 'ada', 'ada', 'ada'].map((user) => driver.ask(user));
    expect(driver.requested).toBe(1);
    driver.turn();
    expect(driver.log).toHaveLength(1);
    driver.commitAll();
    expect(answers.map(([answer]) => allowed(answer))).toEqual([true, true, true, true, false]);
  });

  it('are sent when the whole entry is applied: a request right after an answer sees the whole entry', () => {
    const driver = FakeDriver.leading();
    const again: Answer[] = [];
    const peek = { ask: 'peek', userId: 'bob' } as const;
    driver.partition.decide({ userId: 'ada' }, driver.now + 1_000, () => again.push(...driver.ask(peek)));
    for (const user of ['bob', 'bob', 'bob']) driver.ask(user);
    driver.turn();
    driver.commitAll();
    expect(again).toMatchObject([{ kind: 'keyStatus', keyStatus: { limits: [{ remaining: 0 }] } }]);
  });

  it('take several entries if the requests do not fit into one', () => {
    const driver = FakeDriver.leading({ partition: { batchMax: 4 } });
    const answers = Array.from({ length: 10 }, (_, i) => driver.ask(`user${i}`));
    const sizes: number[] = [];
    while (driver.requested > 0) {
      driver.requested = 0;
      const entry = driver.turn();
      const command = entry && decodeCommand(entry.data);
      if (command?.type === 'allow') sizes.push(command.batch.size);
    }
    expect(sizes).toEqual([4, 4, 2]);
    driver.commitAll();
    for (const [answer] of answers) expect(allowed(answer)).toBe(true);
  });

  it('of a full window are denials by the log first, and then quick denials without an entry', () => {
    const driver = FakeDriver.leading();
    for (let i = 0; i < 3; i += 1) expect(allowed(driver.decide('ada'))).toBe(true);
    expect(driver.ask('ada')).toEqual([]);
    driver.turn();
    driver.commitAll();
    const { lastIndex } = driver;
    driver.requested = 0;
    expect(driver.ask('ada')).toMatchObject([{ kind: 'decision', decision: { allowed: false } }]);
    expect(driver.turn()).toBeUndefined();
    expect([driver.requested, driver.lastIndex, driver.partition.waitingCount]).toEqual([0, lastIndex, 0]);
  });

  it('may be quick denials for at least half a minute after a denial, and then until others were denied for as long', () => {
    const driver = FakeDriver.leading();
    for (let i = 0; i < 4; i += 1) driver.decide('ada');
    for (const [millis, isAtOnce] of [
      [29_000, true],
      [31_000, true],
      [31_000, false],
    ] as const) {
      driver.now += millis;
      for (let i = 0; i < 3; i += 1) driver.decide('ada');
      // Others are denied meanwhile.
      for (let i = 0; i < 4; i += 1) driver.decide(`other${millis}${isAtOnce}`);
      expect(driver.ask('ada').length === 1, `${millis} ms later`).toBe(isAtOnce);
      driver.turn();
      driver.commitAll();
    }
  });

  it('are not made by a node that does not lead: it names the leader and proposes nothing', () => {
    const driver = new FakeDriver();
    driver.follow(3);
    expect(driver.ask('ada')).toEqual([{ kind: 'notLeader', leader: 3, term: driver.term }]);
    expect(driver.leaders).toEqual([3]);
    expect(driver.partition.waitingCount).toBe(0);
  });

  it('wait for the first rules to be applied', () => {
    const driver = new FakeDriver();
    driver.lead();
    const answers = driver.ask('ada');
    driver.commitAll();
    expect(answers).toEqual([]);
    for (let i = 0; i < 2; i += 1) {
      driver.turn();
      driver.commitAll();
    }
    expect(answers).toMatchObject([{ kind: 'decision', decision: { allowed: true } }]);
  });
});

describe('a leader that has not applied all entries of former leaders', () => {
  const request: AllowRequest = { userId: 'ada', timestampMillis: START + 5_000, requestId: 'r1' };
  const table = tableOf(1, { id: 'a', clock: 'request', limit: 1 });

  function newLeader(): FakeDriver {
    const driver = FakeDriver.leading({ table });
    driver.decide('ada');
    driver.follow();
    driver.lead();
    return driver;
  }

  it('denies nothing: a later entry in its log may grant the request', () => {
    const driver = newLeader();
    const answers = driver.ask({ userId: 'ada' });
    expect(answers).toEqual([]);
    expect(driver.partition.waitingCount).toBe(1);
    driver.commitAll();
    driver.turn();
    driver.commitAll();
    expect(answers.map(allowed)).toEqual([false]);
    expect(driver.partition.waitingCount).toBe(0);
  });

  it('names the new leader if it loses its leadership before', () => {
    const driver = newLeader();
    const answers = driver.ask(request);
    driver.follow(3);
    expect(answers).toMatchObject([{ kind: 'notLeader', leader: 3 }]);
  });
});
