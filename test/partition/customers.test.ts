/** Customer commands go through the log of their partition, in separate entries that alternate with requests. */
import { describe, expect, it } from 'vitest';
import type { CustomerAction, CustomerRequest } from '../../src/api/customer.ts';
import type { AllowRequest } from '../../src/api/request.ts';
import { decodeCommand } from '../../src/limiter/log/command.ts';
import type { Answer } from '../../src/api/user-request.ts';
import { allowed, FakeDriver, proposedTypes, tableOf } from './fake-driver.ts';

const FIVE = { table: tableOf(1, { limit: 5 }) };
const PRO: CustomerAction = { type: 'put', tier: 'pro', overrides: [] };

function of(userId: string, action: CustomerAction): CustomerRequest {
  return { ask: 'customer', userId, action };
}

function set(used: number, ...ruleIds: string[]): CustomerAction {
  return { type: 'set', used, ruleIds };
}

function guarded(version: number): AllowRequest {
  return { userId: 'ada', ruleId: 'rule0', guard: { userId: 'ada', version } };
}

function versionIn(answer: Answer | undefined): number | undefined {
  return answer?.kind === 'customer' ? answer.outcome.record.version : undefined;
}

describe('a command of an operator', () => {
  it('is answered when its entry is applied, and alternates with requests', () => {
    const driver = FakeDriver.leading(FIVE);
    const answers = [driver.ask('ada'), driver.ask(of('ada', PRO)), driver.ask('bob')];
    expect(proposedTypes(driver)).toEqual(['customers', 'allow']);
    expect(answers).toEqual([[], [], []]);
  });

  it('changes a record at most once per entry, and resets few keys per entry', () => {
    const driver = FakeDriver.leading(FIVE);
    const twice = [PRO, { type: 'delete' } as const].map((action) => driver.ask(of('ada', action)));
    const first = driver.turn();
    const second = driver.turn();
    driver.commitAll();
    expect([versionIn(twice[0]?.[0]), versionIn(twice[1]?.[0])]).toEqual([first?.index, 0]);
    expect(second?.index).toBe((first?.index ?? 0) + 1);
    for (let i = 0; i < 20; i += 1) driver.ask(of(`u${i}`, { type: 'reset' }));
    const command = decodeCommand(driver.turn()?.data ?? new Uint8Array(0));
    expect(command.type === 'customers' && command.requests.length).toBe(16);
  });

  it('sets the usage of few keys per entry, and reports the maximum if it is exceeded', () => {
    const driver = FakeDriver.leading(FIVE);
    for (let i = 0; i < 20; i += 1) driver.ask(of(`u${i}`, set(5, 'rule0')));
    const command = decodeCommand(driver.turn()?.data ?? new Uint8Array(0));
    expect(command.type === 'customers' && command.requests.length).toBe(16);
    driver.commitAll();
    expect(driver.decide('u0')).toMatchObject({ decision: { allowed: false, remaining: 0 } });
    expect(driver.decide(of('ada', set(6, 'rule0')))).toEqual({
      kind: 'invalid',
      field: 'used',
      message: "used must be an integer from 0 to 5, which 'rule0' may grant this key at once",
    });
    expect(driver.decide(of('ada', set(1, 'none')))).toMatchObject({ kind: 'invalid', field: 'rule' });
    driver.partition.limitRoom('full');
    expect(driver.ask(of('ada', set(1, 'rule0')))).toMatchObject([{ reason: 'at_capacity' }]);
  });

  it('is answered only when its entry is committed, and has an effect only then', () => {
    const driver = FakeDriver.leading(FIVE);
    for (let i = 0; i < 5; i += 1) driver.decide('ada');
    const answers = driver.ask(of('ada', { type: 'set', used: 4, ruleIds: ['rule0'] }));
    driver.turn();
    expect(answers).toEqual([]);
    driver.commitAll();
    expect(answers).toMatchObject([{ kind: 'customer', outcome: { isDone: true } }]);
    expect([driver.decide('ada'), driver.decide('ada')].map(allowed)).toEqual([true, false]);
  });

  it('is refused without a proposal if it came too late or the queue is full', () => {
    const driver = FakeDriver.leading(FIVE);
    driver.partition.limitRoom('full');
    expect(driver.ask(of('ada', PRO))).toMatchObject([
      { kind: 'unavailable', reason: 'at_capacity', proposed: false },
    ]);
    expect(driver.decide(of('ada', { type: 'read' }))).toMatchObject({
      kind: 'customer',
      outcome: { isDone: true },
    });
  });

  it('has an unknown outcome if the leader was lost', () => {
    const driver = FakeDriver.leading(FIVE);
    const waiting = driver.ask(of('ada', PRO));
    driver.follow();
    expect(waiting).toMatchObject([{ kind: 'notLeader' }]);
  });
});

describe('an entry whose requests have all expired', () => {
  it.each([
    ['operators', of('ada', PRO), 'bob', 'decision'],
    ['users', 'ada', of('bob', PRO), 'customer'],
  ] as const)(
    'is not proposed, and the request that waits after these %s is next',
    (_who, early, later, kind) => {
      const driver = FakeDriver.leading(FIVE);
      // The last entry was of the other kind.
      driver.decide(typeof early === 'string' ? of('cyd', PRO) : 'cyd');
      const late = driver.ask(early, 10);
      const timely = driver.ask(later, 100);
      driver.now += 10;
      driver.requested = 0;
      expect(driver.turn()).toBeUndefined();
      expect(late).toMatchObject([{ kind: 'unavailable', reason: 'deadline', proposed: false }]);
      // No other code asks the driver for another turn.
      expect([timely, driver.requested]).toEqual([[], 1]);
      driver.turn();
      driver.commitAll();
      expect(timely).toMatchObject([{ kind }]);
    },
  );
});

describe('a request of a customer', () => {
  it('that was matched with an older record is refused at once, before its cost is checked', () => {
    const driver = FakeDriver.leading(FIVE);
    const version = versionIn(driver.decide(of('ada', PRO))) ?? 0;
    const { lastIndex } = driver;
    expect(driver.ask({ ...guarded(0), cost: 9 })).toMatchObject([
      { kind: 'unavailable', reason: 'customer_changed', proposed: false, record: { version, tier: 'pro' } },
    ]);
    expect(driver.lastIndex).toBe(lastIndex);
    expect(allowed(driver.decide(guarded(version)))).toBe(true);
  });

  it('is refused by the log if the change precedes it there', () => {
    const driver = FakeDriver.leading(FIVE);
    const change = driver.ask(of('ada', PRO));
    driver.turn();
    const request = driver.ask(guarded(0));
    driver.turn();
    driver.commitAll();
    expect(change).toHaveLength(1);
    expect(request).toMatchObject([{ reason: 'customer_changed', proposed: false, record: { tier: 'pro' } }]);
  });

  it('that was matched with a newer record than this leader has applied waits for the log', () => {
    const driver = FakeDriver.leading(FIVE);
    driver.ask(of('ada', PRO));
    const version = driver.turn()?.index ?? 0;
    const request = driver.ask(guarded(version));
    driver.turn();
    expect(request).toEqual([]);
    driver.commitAll();
    expect(allowed(request[0])).toBe(true);
  });
});
