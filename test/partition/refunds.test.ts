/** Refunds go through the log in the order in which they come, and an id that was refunded grants nothing more. */
import { describe, expect, it } from 'vitest';
import type { Answer } from '../../src/api/user-request.ts';
import { allowed, FakeDriver, tableOf, usersOf } from './fake-driver.ts';

const GRANT = { userId: 'ada', requestId: 'r1' };
const REFUND = { ask: 'refund', ...GRANT } as const;
const ONE = { table: tableOf(1, { limit: 1 }) };

function refunded(answer: Answer | undefined): boolean | undefined {
  return answer?.kind === 'refund' ? answer.refund.refunded : undefined;
}

describe('a refund', () => {
  it('is answered when its entry is applied, with the receipt of the grant', () => {
    const driver = FakeDriver.leading(ONE);
    const granted = driver.decide(GRANT);
    const answers = driver.ask(REFUND);
    expect(usersOf(driver.turn())).toEqual(['ada']);
    expect(answers).toEqual([]);
    driver.commitAll();
    const decided = granted.kind === 'decision' ? granted.decision.decided : undefined;
    const refund = { refunded: true, ruleId: 'rule0', cost: 1, decided, rulesVersion: 1 };
    expect(answers).toEqual([{ kind: 'refund', refund }]);
    expect(driver.decide(REFUND)).toEqual(answers[0]);
    expect(allowed(driver.decide('ada'))).toBe(true);
  });

  it('comes after the request that it refunds, which may still wait', () => {
    const driver = FakeDriver.leading(ONE);
    const answers = [driver.ask(GRANT), driver.ask(REFUND)];
    driver.turn();
    const late = driver.ask(REFUND);
    driver.turn();
    driver.commitAll();
    expect([allowed(answers[0]?.[0]), refunded(answers[1]?.[0]), refunded(late[0])]).toEqual([
      true,
      true,
      true,
    ]);
  });

  it('of a request that was never granted, or was denied, is answered accordingly', () => {
    const driver = FakeDriver.leading(ONE);
    driver.decide('ada');
    expect(allowed(driver.decide(GRANT))).toBe(false);
    expect(refunded(driver.decide(REFUND))).toBe(false);
  });

  it('makes a retry of the request a conflict', () => {
    const driver = FakeDriver.leading(ONE);
    driver.decide(GRANT);
    driver.ask(REFUND);
    // Not applied yet, so the log decides.
    const early = driver.ask(GRANT);
    driver.turn();
    driver.commitAll();
    const late = driver.ask(GRANT);
    driver.turn();
    driver.commitAll();
    for (const reported of [early, late])
      expect(reported).toEqual([
        {
          kind: 'conflict',
          field: 'requestId',
          message: "requestId 'r1' was refunded and grants nothing more: use a new requestId",
        },
      ]);
  });

  it('of another leader is not undone by a grant that this leader applies late', () => {
    const driver = FakeDriver.leading(ONE);
    const first = driver.ask(GRANT);
    const entry = driver.turn();
    // All other nodes have that entry, have committed it under another leader, and have refunded it.
    const retry = driver.ask(GRANT);
    driver.turn();
    const [mine] = driver.log.splice(0);
    expect(mine).toBe(entry);
    driver.follow();
    driver.log.push(entry!);
    driver.commitAll();
    expect([allowed(first[0]), retry]).toEqual([true, []]);
    driver.overwrite(1);
    expect(retry).toEqual([{ kind: 'unavailable', reason: 'no_leader', proposed: false }]);
  });

  it('is refused like any request if nothing can be proposed', () => {
    const driver = FakeDriver.leading({ ...ONE, partition: { pendingMax: 1 } });
    driver.partition.setLowDisk(true);
    expect(driver.ask(REFUND)).toEqual([{ kind: 'unavailable', reason: 'low_disk', proposed: false }]);
    driver.partition.setLowDisk(false);
    driver.ask('ada');
    expect(driver.ask(REFUND)).toEqual([{ kind: 'unavailable', reason: 'overloaded', proposed: false }]);
  });

  it('is in one entry with few others, and no later request overtakes it', () => {
    const driver = FakeDriver.leading(ONE);
    for (let i = 0; i < 40; i += 1) driver.ask({ ...REFUND, userId: `user${i}` });
    driver.ask('last');
    const entries = [1, 2, 3].map(() => usersOf(driver.turn()));
    expect(entries.map((users) => users.length)).toEqual([16, 16, 9]);
    expect(entries[2]?.at(-1)).toBe('last');
  });

  it('waits with a bounded number of others: more are refused until some are in the log', () => {
    const driver = FakeDriver.leading(ONE);
    const refund = (i: number) => driver.ask({ ...REFUND, userId: `user${i}` });
    const overloaded = [{ kind: 'unavailable', reason: 'overloaded', proposed: false }];
    for (let i = 0; i < 256; i += 1) expect(refund(i)).toEqual([]);
    expect(refund(256)).toEqual(overloaded);
    expect(driver.ask('ada')).toEqual([]);
    driver.turn();
    for (let i = 0; i < 16; i += 1) expect(refund(300 + i)).toEqual([]);
    expect(refund(400)).toEqual(overloaded);
    driver.follow();
    driver.lead();
    driver.commitAll();
    expect(refund(500)).toEqual([]);
  });

  it('is in the last entry that a turn applies', () => {
    const driver = FakeDriver.leading(ONE);
    const [grant, refund] = [GRANT, REFUND].map((request) => {
      driver.ask(request);
      return driver.turn();
    });
    expect(driver.partition.isSlowToApply(grant!)).toBe(false);
    expect(driver.partition.isSlowToApply(refund!)).toBe(true);
    expect(driver.partition.isSlowToApply({ ...refund!, kind: 'noop' })).toBe(false);
  });
});
