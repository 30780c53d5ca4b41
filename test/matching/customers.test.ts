/**
 * Tests requests of customers: they are matched with the known record and decided only while that record is
 * current.
 */
import { describe, expect, it } from 'vitest';
import type { AllowAnswer } from '../../src/api/answer.ts';
import type { CustomerAnswer, CustomerRequest } from '../../src/api/customer.ts';
import type { CustomerRecord } from '../../src/api/customer-record.ts';
import type { Question } from '../../src/api/question.ts';
import { CustomerCache, CUSTOMERS_MAX } from '../../src/matching/customer-cache.ts';
import { Bench, ruleSetOf, decision, DENIED, GONE, LOST } from './bench.ts';

const DOCUMENT = `
rules:
  - { id: free, match: { tier: free }, key: customer, group: tier, windows: { limit: 2, per: minute } }
  - { id: pro, match: { tier: pro }, key: customer, group: tier, windows: { limit: 9, per: minute }, meter: tokenBucket }
  - { id: net, key: ip, windows: { limit: 10, per: minute } }
`;
const ADA = { customer: 'ada', tier: 'free' };
const PRO: CustomerRecord = { version: 5, tier: 'pro', overrides: [], isBlocked: false };

function benchOf(document = DOCUMENT): Bench {
  const bench = new Bench();
  bench.ruleSet = ruleSetOf(7, document);
  return bench;
}

function changed(record: CustomerRecord): AllowAnswer {
  return { kind: 'unavailable', reason: 'customer_changed', proposed: false, record };
}

function put(
  bench: Bench,
  overrides: readonly { ruleId: string; limit: number; burst?: number }[],
): CustomerAnswer[] {
  const answers: CustomerAnswer[] = [];
  bench.requests.customers.ask('ada', { type: 'put', overrides }, (answer) => answers.push(answer));
  return answers;
}

function requestOf(customer: string): Question {
  return { descriptors: new Map([['customer', customer]]) };
}

function reported(record: CustomerRecord): CustomerAnswer {
  return {
    kind: 'customer',
    outcome: { isDone: true, record, decided: { term: 1, index: 9, timeMillis: 8 } },
  };
}

describe('a request of a customer', () => {
  it('is matched with the known record, and again at once with the current one', () => {
    const bench = benchOf();
    bench.ask(ADA, { requestId: 'r1' });
    const guard = { userId: 'customer=ada', version: 0 };
    expect(bench.of('customer').request).toMatchObject({ ruleId: 'free/minute', requestId: 'r1', guard });
    bench.of('customer').answer(changed(PRO));
    expect(bench.asked).toHaveLength(2);
    const second = bench.of('customer').request;
    expect(second).toMatchObject({ ruleId: 'pro/minute', requestId: 'r1', guard: { ...guard, version: 5 } });
    bench.of('customer').answer(decision({ ruleId: 'pro/minute' }));
    expect(bench.reported).toMatchObject([{ answer: { decision: { allowed: true, ruleId: 'pro/minute' } } }]);
    bench.ask(ADA);
    expect(bench.of('customer').request).toMatchObject({ ruleId: 'pro/minute', guard: { version: 5 } });
    bench.of('customer').answer(changed({ version: 0, overrides: [], isBlocked: false }));
    expect(bench.of('customer').request).toMatchObject({ ruleId: 'free/minute', guard: { version: 0 } });
  });

  it('is repeated with every tick while its record keeps changing, until its deadline', () => {
    const bench = benchOf();
    bench.ask(ADA);
    for (let version = 1; version <= 4; version += 1)
      bench.of('customer').answer(changed({ ...PRO, version }));
    expect(bench.asked).toHaveLength(4);
    bench.requests.tick();
    expect(bench.asked).toHaveLength(5);
    bench.now += 1_000;
    for (let version = 5; version <= 8; version += 1)
      bench.of('customer').answer(changed({ ...PRO, version }));
    expect(bench.reported).toMatchObject([{ answer: { kind: 'unavailable', reason: 'customer_changed' } }]);
  });

  it("gives back its reservations before it is repeated, and asks the customer's partition last", () => {
    const bench = benchOf();
    bench.ask({ ip: '10.0.0.1', ...ADA });
    expect(bench.asked.map(({ request }) => request.userId)).toEqual(['ip=10.0.0.1']);
    bench.of('ip').answer(decision());
    bench.of('customer').answer(changed(PRO));
    expect(bench.refunds()).toMatchObject([{ userId: 'ip=10.0.0.1' }]);
    bench.of('ip').answer(decision());
  });

  it('is not repeated if it may have been granted', () => {
    const bench = benchOf();
    bench.ask(ADA);
    bench.of('customer').answer({ ...changed(PRO), proposed: true } as AllowAnswer);
    expect(bench.asked).toHaveLength(1);
    expect(bench.reported).toMatchObject([{ answer: { reason: 'customer_changed', proposed: true } }]);
  });

  it('reads the record through the log first, if no limit is in the partition of the record', () => {
    const bench = benchOf();
    bench.ask({ customer: 'ada', ip: '10.0.0.1' });
    const read = { ask: 'customer', userId: 'customer=ada', action: { type: 'read' } };
    expect(bench.asked.map(({ request }) => request)).toEqual([read]);
    bench.of('customer').answer(reported(PRO));
    // Its tier has a limit of its own.
    expect(bench.of('ip').request.requestId).toBeDefined();
    bench.of('ip').answer(decision());
    expect(bench.of('customer').request).toMatchObject({ ruleId: 'pro/minute', guard: { version: 5 } });
  });

  it('is denied by limits of the current record, not of an outdated tier', () => {
    const bench = benchOf();
    bench.ask({ ip: '10.0.0.1', ...ADA }, { requestId: 'r1' });
    bench.of('ip').answer(DENIED);
    const read = { ask: 'customer', userId: 'customer=ada', action: { type: 'read' } };
    expect(bench.asked.at(-1)?.request).toEqual(read);
    expect(bench.reported).toEqual([]);
    bench.of('customer').answer(reported(PRO));
    // Repeated, with the limits of that tier.
    bench.of('ip').answer(DENIED);
    expect(bench.asked.at(-1)?.request).toEqual(read);
    bench.of('customer').answer(reported(PRO));
    expect(bench.of('customer').request).toMatchObject({ ruleId: 'pro/minute', ifRemembered: true });
    bench.of('customer').answer({ kind: 'invalid', field: 'requestId', message: 'none' });
    expect(bench.reported).toMatchObject([{ answer: { decision: { allowed: false } } }]);
  });

  it('without limits is let through only if the customer is not blocked', () => {
    const bench = benchOf();
    bench.ask({ customer: 'ada' });
    bench.of('customer').answer(reported({ version: 0, overrides: [], isBlocked: false }));
    expect(bench.reported).toMatchObject([{ answer: { kind: 'unlimited' }, partition: 0 }]);
    bench.ask({ customer: 'ada' });
    bench.of('customer').answer(reported({ version: 6, overrides: [], isBlocked: true }));
    bench.of('customer').answer(reported({ version: 6, overrides: [], isBlocked: true }));
    expect(bench.reported[1]).toMatchObject({ answer: { decision: { allowed: false, isBlocked: true } } });
  });

  it('reserves nothing if the customer is blocked, and still gets the grant of an earlier attempt', () => {
    const bench = benchOf();
    bench.ask({ customer: 'ada', tier: 'free', ip: '10.0.0.1' }, { requestId: 'r1' });
    bench.of('ip').answer(decision());
    bench.of('customer').answer(changed({ ...PRO, isBlocked: true }));
    const before = bench.asked.length;
    bench.of('customer').answer(reported({ ...PRO, isBlocked: true }));
    expect(bench.asked.slice(before).map(({ request }) => request)).toMatchObject([{ ifRemembered: true }]);
    bench.asked.at(-1)?.answer({ kind: 'invalid', field: 'requestId', message: '' });
    expect(bench.reported).toMatchObject([{ answer: { decision: { isBlocked: true } } }]);
  });

  it('whose block has ended in group time is repeated at once, without reading the record first', () => {
    const bench = benchOf();
    bench.ask(ADA);
    bench.of('customer').answer(changed({ ...PRO, isBlocked: true, blockedUntilMillis: 9 }));
    bench.of('customer').answer(reported({ ...PRO, isBlocked: true, blockedUntilMillis: 9 }));
    expect(bench.reported).toMatchObject([
      { answer: { decision: { isBlocked: true, retryAfterMillis: 1 } } },
    ]);
    bench.ask(ADA);
    expect(bench.of('customer').request).toMatchObject({ action: { type: 'read' } });
    // At group time 9 or later.
    bench.of('customer').answer(reported(PRO));
    expect(bench.of('customer').request).toMatchObject({ ruleId: 'pro/minute', guard: { version: 5 } });
    bench.of('customer').answer(decision({ ruleId: 'pro/minute' }));
    expect(bench.reported[1]).toMatchObject({ answer: { decision: { allowed: true } } });
    bench.ask(ADA);
    expect(bench.of('customer').request).toMatchObject({ ruleId: 'pro/minute', guard: { version: 5 } });
  });

  it('has its id kept by the key of the customer, and a recall asks that key', () => {
    const bench = benchOf(`${DOCUMENT}
  - { id: early, key: [customer, endpoint], group: early, windows: { limit: 9, per: minute } }`);
    bench.ask({ ip: '10.0.0.1', endpoint: '/a', ...ADA }, { requestId: 'r1' });
    bench.of('ip').answer(decision());
    const own = { userId: 'customer=ada', requestId: 'r1' };
    expect(bench.of('customer').request).toMatchObject(own);
    bench.of('customer').answer(changed({ ...PRO, isBlocked: true }));
    bench.of('customer').answer(reported({ ...PRO, isBlocked: true }));
    expect(bench.of('customer').request).toMatchObject({ ...own, ifRemembered: true });
  });

  it('that is invalid by the known record is repeated with the current one', () => {
    const bench = benchOf(`${DOCUMENT}
  - { id: dear, match: { tier: free }, key: customer, group: dear, windows: { limit: 9, per: minute }, cost: 1000000 }`);
    bench.ask(ADA, { cost: 2 });
    expect(bench.reported).toEqual([]);
    bench.of('customer').answer(reported(PRO));
    bench.of('customer').answer(decision({ ruleId: 'pro/minute' }));
    expect(bench.reported).toMatchObject([{ answer: { decision: { ruleId: 'pro/minute' } } }]);
    bench.ask({ customer: 'bob', tier: 'free' }, { cost: 2 });
    bench.of('customer=bob').answer(reported({ version: 0, overrides: [], isBlocked: false }));
    expect(bench.reported[1]).toMatchObject({ answer: { kind: 'invalid', field: 'cost' } });
  });

  it.each([GONE, LOST])('whose record no partition returns is refused, $reason', (answer) => {
    const bench = benchOf();
    bench.ask({ customer: 'ada', ip: '10.0.0.1' });
    bench.of('customer').answer(answer);
    expect(bench.reported).toMatchObject([{ answer }]);
    expect(bench.asked).toHaveLength(1);
  });

  it('is decided without its record if its fail modes are open, unless the customer was blocked', () => {
    const bench = benchOf(
      'rules: [{ id: net, key: ip, failMode: open, windows: { limit: 10, per: minute } }]',
    );
    bench.ask({ customer: 'ada', ip: '10.0.0.1' });
    bench.of('customer').answer(GONE);
    bench.of('ip').answer(DENIED);
    expect(bench.reported).toMatchObject([{ answer: { decision: { allowed: false } } }]);
    bench.ask({ customer: 'ada', ip: '10.0.0.1' });
    bench.of('customer').answer(reported({ ...PRO, isBlocked: true }));
    bench.of('customer').answer(GONE);
    expect(bench.reported[1]).toMatchObject({ answer: GONE });
  });
});

describe('a request without a customer', () => {
  it('is matched without a record', () => {
    const bench = benchOf();
    bench.ask({ ip: '10.0.0.1', tier: 'pro' });
    expect(bench.asked).toHaveLength(1);
    expect(bench.of('ip').request.guard).toBeUndefined();
  });
});

describe('an operation on a customer', () => {
  it('goes to the key of the customer, and this node then matches with the new record', () => {
    const bench = benchOf();
    const answers = put(bench, [{ ruleId: 'free/minute', limit: 1 }]);
    expect(bench.of('customer').request as unknown as CustomerRequest).toMatchObject({
      ask: 'customer',
      userId: 'customer=ada',
    });
    bench.of('customer').answer(reported(PRO));
    expect(answers).toEqual([reported(PRO)]);
    bench.ask(ADA);
    expect(bench.of('customer').request).toMatchObject({ ruleId: 'pro/minute', guard: { version: 5 } });
  });

  it.each([
    ['an unknown rule', { ruleId: 'gold', limit: 1 }, 'overrides[0].rule', /in force.* have no 'gold'$/],
    [
      'a rule without its window',
      { ruleId: 'free', limit: 1 },
      'overrides[0].rule',
      /'free\/minute': 'free' is a/,
    ],
    [
      'a rule that counts by another descriptor',
      { ruleId: 'net/minute', limit: 1 },
      'overrides[0].rule',
      /by customer alone, and 'net\/minute' is none$/,
    ],
    [
      'a burst for a rule that is no bucket',
      { ruleId: 'free/minute', limit: 1, burst: 3 },
      'overrides[0].burst',
      /is not a bucket$/,
    ],
  ])('is refused for %s', (_, override, field, why) => {
    const bench = benchOf();
    expect(put(bench, [override])).toMatchObject([
      { kind: 'invalid', field, message: expect.stringMatching(why) },
    ]);
    expect(bench.asked).toEqual([]);
  });

  it('is refused if the id is too long for a key', () => {
    const answers: CustomerAnswer[] = [];
    benchOf().requests.customers.ask('x'.repeat(1_016), { type: 'read' }, (answer) => answers.push(answer));
    expect(answers).toMatchObject([{ kind: 'invalid', field: 'customer' }]);
  });
});

function setBy(
  bench: Bench,
  key: string,
  rule: string,
): { readonly action: unknown; reported: CustomerAnswer[] } {
  const answers: CustomerAnswer[] = [];
  bench.requests.customers.setUsed({ key, rule, used: 3 }, (answer) => answers.push(answer));
  const request = bench.asked.at(-1)?.request as unknown as CustomerRequest | undefined;
  return { action: request?.action, reported: answers };
}

describe('the usage of a key', () => {
  const windows = [
    { limit: 5, per: 'minute' },
    { limit: 100, per: 'day' },
  ];
  const document = JSON.stringify({
    rules: [
      { id: 'both', key: 'user', windows },
      { id: 'net', key: 'ip', windows: windows[0] },
    ],
  });

  it('can be set for all windows of a rule, or for one', () => {
    const bench = benchOf(document);
    const set = { type: 'set', used: 3 };
    const all = ['both/minute', 'both/day'];
    expect(setBy(bench, 'user=ada', 'both').action).toEqual({ ...set, ruleIds: all });
    expect(setBy(bench, 'user=ada', 'both/day').action).toEqual({ ...set, ruleIds: ['both/day'] });
    expect(setBy(bench, 'ip=10.0.0.1', 'net').action).toEqual({ ...set, ruleIds: ['net/minute'] });
  });

  it.each(['net', 'none', '5/1000ms'])('cannot be set for a rule that does not count by it: %s', (rule) => {
    const bench = benchOf(document);
    expect(setBy(bench, 'user=ada', rule).reported).toMatchObject([{ kind: 'invalid', field: 'rule' }]);
    expect(bench.asked).toEqual([]);
  });

  it('is set only when this node has rules', () => {
    const bench = new Bench();
    bench.ruleSet = 'starting';
    expect(setBy(bench, 'user=ada', 'both').reported).toMatchObject([{ reason: 'starting' }]);
  });
});

describe('the records that a node remembers', () => {
  it('are bounded in number: one more evicts the least recently used one', () => {
    const cache = new CustomerCache();
    for (let i = 0; i < CUSTOMERS_MAX; i += 1) cache.learn(`customer=${i}`, PRO);
    expect(cache.of(requestOf('0'))?.version).toBe(5);
    cache.learn('customer=more', PRO);
    expect(cache.size).toBe(CUSTOMERS_MAX);
    expect([cache.of(requestOf('0'))?.version, cache.of(requestOf('1'))?.version]).toEqual([5, 0]);
  });
});
