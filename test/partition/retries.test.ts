/** The purpose of a request id: a retry gets the answer of its first attempt, and no other request does. */
import type { AllowRequest } from '../../src/api/request.ts';
import { describe, expect, it } from 'vitest';
import { allowed, FakeDriver, START, tableOf, usersOf } from './fake-driver.ts';

function attemptOf(attempt: number): AllowRequest {
  return { userId: 'ada', requestId: 'r1', askedDigest: 1, matchedBy: 1, attempt };
}

describe('retries with a request id', () => {
  const again = { userId: 'ada', requestId: 'r1' };

  it('join the waiting attempt, and get the same answer, charged once', () => {
    const driver = FakeDriver.leading();
    const answers = [driver.ask(again), driver.ask(again)];
    expect(usersOf(driver.turn())).toEqual(['ada']);
    // An attempt in the log may be committed already, and refunded by another leader. A later entry finds out.
    answers.push(driver.ask(again), driver.ask(again));
    expect(usersOf(driver.turn())).toEqual(['ada']);
    driver.commitAll();
    expect(answers.map((list) => list.length)).toEqual([1, 1, 1, 1]);
    expect(new Set(answers.map(([answer]) => JSON.stringify(answer))).size).toBe(1);
    // Two more are granted, so only one was charged.
    expect([1, 2, 3].map(() => allowed(driver.decide('ada')))).toEqual([true, true, false]);
  });

  it('with another attempt number learn that the grant is not theirs: they must give back their own reservations', () => {
    const driver = FakeDriver.leading();
    const [first, second, same] = [1, 2, 1].map((attempt) => driver.ask(attemptOf(attempt)));
    driver.turn();
    driver.commitAll();
    expect([first, second, same].map((reported) => reported?.map(allowed))).toEqual([[true], [true], [true]]);
    expect(first?.[0]).not.toHaveProperty('isRepeat');
    expect(second).toEqual([{ ...first?.[0], isRepeat: true }]);
    // A node that asks again because it got no answer sends the same attempt.
    expect(same).toEqual(first);
  });

  it('get the remembered answer through the log once the attempt is decided, and charge nothing', () => {
    const driver = FakeDriver.leading();
    const first = driver.decide(again);
    driver.decide('ada');
    const reported = driver.ask(again);
    expect(reported).toEqual([]);
    driver.turn();
    driver.commitAll();
    expect(reported).toEqual([first]);
    expect([1, 2].map(() => allowed(driver.decide('ada')))).toEqual([true, false]);
    // The window is full.
    expect(driver.decide(again)).toEqual(first);
  });

  it('get no answer from a leader that can no longer commit', () => {
    const driver = FakeDriver.leading();
    driver.decide(again);
    const reported = driver.ask(again);
    driver.turn();
    driver.follow();
    driver.overwrite(1);
    expect(reported).toEqual([{ kind: 'unavailable', reason: 'no_leader', proposed: false }]);
  });

  it('of another user are other requests', () => {
    const driver = FakeDriver.leading();
    const answers = [
      driver.ask(again),
      driver.ask({ ...again, userId: 'bob' }),
      // The lengths distinguish keys whose parts read the same when joined.
      driver.ask({ userId: 'adar', requestId: '1' }),
    ];
    const entry = driver.turn();
    expect(usersOf(entry)).toEqual(['ada', 'bob', 'adar']);
    driver.commitAll();
    for (const [answer] of answers) expect(allowed(answer)).toBe(true);
  });

  it('of a denied request are decided again', () => {
    const driver = FakeDriver.leading({ table: tableOf(1, { limit: 1 }) });
    driver.decide('ada');
    expect(allowed(driver.decide(again))).toBe(false);
    expect(allowed(driver.ask(again)[0])).toBe(false);
    driver.now += 1_002;
    expect(allowed(driver.decide(again))).toBe(true);
  });

  it('are bounded in number while they wait', () => {
    const driver = FakeDriver.leading();
    const answers = Array.from({ length: 100 }, () => driver.ask(again));
    const refused = answers.filter(([answer]) => answer?.kind === 'unavailable');
    expect(refused.length).toBe(100 - 1 - 64);
    expect(refused[0]).toEqual([{ kind: 'unavailable', reason: 'overloaded', proposed: false }]);
    driver.turn();
    driver.commitAll();
    for (const list of answers) expect(list).toHaveLength(1);
  });
});

describe('a request id reused with another cost, rule or timestamp', () => {
  const first: AllowRequest = { userId: 'ada', cost: 2, requestId: 'r1' };
  const table = tableOf(1, { id: 'a', clock: 'request', limit: 9 }, { id: 'b', limit: 9 });
  const others: readonly [string, AllowRequest, RegExp][] = [
    ['cost', { ...first, cost: 3 }, /'r1' was used before, with cost 2/],
    ['rule', { ...first, ruleId: 'b' }, /'r1' was used before, without rule/],
    [
      'timestampMillis',
      { ...first, timestampMillis: START },
      /'r1' was used before, without timestampMillis/,
    ],
  ];

  it.each(others)('is a conflict that names the field that differs: %s', (field, other, message) => {
    const driver = FakeDriver.leading({ table });
    const granted = driver.decide(first);
    expect(driver.decide(other)).toEqual({
      kind: 'conflict',
      field,
      message: expect.stringMatching(message),
    });
    expect(driver.decide(first)).toEqual(granted);
  });

  it.each(others)('does not join the first while that is in flight: %s', (field, other) => {
    const driver = FakeDriver.leading({ table });
    const answers = driver.ask(first);
    const others = [driver.ask(other)];
    driver.turn();
    others.push(driver.ask(other));
    const joined = driver.ask(first);
    driver.turn();
    driver.commitAll();
    expect(answers.map(allowed)).toEqual([true]);
    expect(joined).toEqual(answers);
    for (const reported of others) expect(reported).toMatchObject([{ kind: 'conflict', field }]);
  });

  it('is not refused because of another one in flight if the log already has the same request', () => {
    const elsewhere = FakeDriver.leading({ table });
    elsewhere.ask(first);
    const entry = elsewhere.turn();
    const driver = FakeDriver.leading({ table });
    driver.append('command', entry?.data ?? new Uint8Array(0));
    const other = driver.ask({ ...first, cost: 3 });
    driver.turn();
    // Its first attempt was lost with the former leader but is charged.
    const again = driver.ask(first);
    driver.turn();
    driver.commitAll();
    expect(again.map(allowed)).toEqual([true]);
    expect(other).toMatchObject([{ kind: 'conflict', field: 'cost' }]);
  });

  it.each(others)('is refused by the log if another leader logged the first: %s', (field, other) => {
    const elsewhere = FakeDriver.leading({ table });
    elsewhere.ask(first);
    const entry = elsewhere.turn();
    // It is in the log, but not applied yet.
    const driver = FakeDriver.leading({ table });
    driver.append('command', entry?.data ?? new Uint8Array(0));
    const answers = driver.ask(other);
    driver.turn();
    driver.commitAll();
    expect(answers).toMatchObject([{ kind: 'conflict', field }]);
  });

  it('is a conflict even if the rules could not decide the request', () => {
    const driver = FakeDriver.leading({ table });
    driver.decide(first);
    expect(driver.decide({ ...first, cost: 10 })).toMatchObject({ kind: 'conflict', field: 'cost' });
    expect(driver.decide({ ...first, ruleId: 'none' })).toMatchObject({ kind: 'conflict', field: 'rule' });
  });
});
