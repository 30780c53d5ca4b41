/**
 * Tests refunds by descriptors: in the partition that keeps the id, and of the reservations in other partitions.
 */
import { describe, expect, it } from 'vitest';
import type { RefundQuestionAnswer, Refund } from '../../src/api/refund.ts';
import { Bench, ruleSetOf, FROM, GONE, LOST } from './bench.ts';

const REFUND: Refund = {
  refunded: true,
  ruleId: 'user/minute',
  cost: 1,
  decided: { term: 1, index: 5, position: 0, timeMillis: 8 },
  rulesVersion: 7,
};
/** The refund of a request with reservations elsewhere; attempt 36 is written `~10`. */
const OF_ATTEMPT: Refund = { ...REFUND, attempt: 36 };
const NONE: Refund = { ...REFUND, refunded: false, ruleId: '', cost: 0 };

function refund(bench: Bench, descriptors: Readonly<Record<string, string>>): RefundQuestionAnswer[] {
  const reported: RefundQuestionAnswer[] = [];
  const request = { descriptors: new Map(Object.entries(descriptors)), requestId: 'r1' };
  bench.requests.refund({ ...request }, (answer) => reported.push(answer));
  return reported;
}

describe('a refund by descriptors', () => {
  it('goes to the partition of the first limit, and then to all others under the number of the attempt', () => {
    const bench = new Bench();
    const reported = refund(bench, FROM);
    expect(bench.asked).toMatchObject([
      { request: { ask: 'refund', userId: 'user=ada', requestId: 'r1' }, deadlineMillis: 1_500 },
    ]);
    bench.of('user').answer({ kind: 'refund', refund: OF_ATTEMPT });
    expect(reported).toEqual([]);
    expect(bench.asked.slice(1)).toMatchObject([
      { request: { ask: 'refund', userId: 'ip=10.0.0.1', requestId: '~10.2' }, deadlineMillis: 1_500 },
      { request: { ask: 'refund', userId: '*', requestId: '~10.3' }, deadlineMillis: 1_500 },
    ]);
    bench.of('*').answer({ kind: 'refund', refund: REFUND });
    expect(reported).toEqual([]);
    bench.of('ip').answer({ kind: 'refund', refund: REFUND });
    expect(reported).toEqual([{ kind: 'refund', refund: OF_ATTEMPT, kept: [] }]);
  });

  it('lists the limits that stay charged because their partition did not answer', () => {
    const bench = new Bench();
    const reported = refund(bench, FROM);
    bench.of('user').answer({ kind: 'refund', refund: OF_ATTEMPT });
    bench.of('*').answer(LOST);
    bench.of('ip').answer(GONE);
    const kept = [
      { ruleId: 'net/minute', userId: 'ip=10.0.0.1' },
      { ruleId: 'all/minute', userId: '*' },
    ];
    expect(reported).toEqual([{ kind: 'refund', refund: OF_ATTEMPT, kept }]);
  });

  it('leaves the charged limits unreported if no reservation is found under the number of the attempt', () => {
    const bench = new Bench();
    const reported = refund(bench, FROM);
    bench.of('user').answer({ kind: 'refund', refund: OF_ATTEMPT });
    bench.of('*').answer({ kind: 'refund', refund: NONE });
    bench.of('ip').answer({ kind: 'refund', refund: REFUND });
    expect(reported).toEqual([{ kind: 'refund', refund: OF_ATTEMPT, kept: undefined }]);
  });

  it('asks no other partition for a request without reservations', () => {
    const bench = new Bench();
    const reported = refund(bench, FROM);
    bench.of('user').answer({ kind: 'refund', refund: REFUND });
    expect(reported).toEqual([{ kind: 'refund', refund: REFUND, kept: [] }]);
    expect(bench.asked).toHaveLength(1);
  });

  it('of a request in one partition leaves nothing charged', () => {
    const bench = new Bench();
    bench.ruleSet = ruleSetOf(7, 'rules: [{ id: user, key: user, windows: { limit: 2, per: minute } }]');
    const reported = refund(bench, FROM);
    bench.of('user').answer({ kind: 'refund', refund: REFUND });
    expect(reported).toEqual([{ kind: 'refund', refund: REFUND, kept: [] }]);
  });

  it('leaves the charged limits unreported if the grant was made by other rules', () => {
    const bench = new Bench();
    bench.ruleSet = ruleSetOf(8);
    const reported = refund(bench, FROM);
    bench.of('user').answer({ kind: 'refund', refund: OF_ATTEMPT });
    expect(reported).toEqual([{ kind: 'refund', refund: OF_ATTEMPT, kept: undefined }]);
    expect(bench.asked).toHaveLength(1);
  });

  it('leaves the charged limits unreported if the request now has no other limits', () => {
    const bench = new Bench();
    bench.ruleSet = ruleSetOf(7, 'rules: [{ id: user, key: user, windows: { limit: 2, per: minute } }]');
    const reported = refund(bench, FROM);
    bench.of('user').answer({ kind: 'refund', refund: OF_ATTEMPT });
    expect(reported).toEqual([{ kind: 'refund', refund: OF_ATTEMPT, kept: undefined }]);
  });

  it('of a request that was never granted gives nothing back', () => {
    const bench = new Bench();
    const reported = refund(bench, FROM);
    bench.of('user').answer({ kind: 'refund', refund: NONE });
    expect(reported).toEqual([{ kind: 'refund', refund: NONE, kept: [] }]);
  });

  it('also asks the key that kept the id under earlier rules, and then leaves the charged limits unreported', () => {
    const bench = new Bench();
    bench.earlier = [ruleSetOf(0, 'rules: [{ id: net, key: ip, windows: { limit: 2, per: minute } }]')];
    const reported = refund(bench, FROM);
    bench.of('user').answer({ kind: 'refund', refund: NONE });
    expect(reported).toEqual([]);
    expect(bench.asked[1]).toMatchObject({
      request: { ask: 'refund', userId: 'ip=10.0.0.1', requestId: 'r1' },
      deadlineMillis: 1_500,
    });
    const before: Refund = { ...OF_ATTEMPT, rulesVersion: 6 };
    bench.of('ip').answer({ kind: 'refund', refund: before });
    expect(reported).toEqual([{ kind: 'refund', refund: before, kept: undefined }]);
    expect(bench.asked).toHaveLength(2);
  });

  it('finds the earlier grant even if no rule limits the request now, and asks each key once', () => {
    const bench = new Bench();
    bench.ruleSet = ruleSetOf(7, 'rules: [{ id: org, key: org, windows: { limit: 2, per: minute } }]');
    const net = 'rules: [{ id: net, key: ip, windows: { limit: 2, per: minute } }]';
    bench.earlier = [ruleSetOf(0, net), ruleSetOf(0, net)];
    const reported = refund(bench, FROM);
    bench.of('ip').answer({ kind: 'refund', refund: NONE });
    expect(reported).toEqual([{ kind: 'refund', refund: NONE, kept: [] }]);
    expect(bench.asked).toHaveLength(1);
  });

  it('reports that no partition answers, no rule has a limit, or the rules are unknown', () => {
    const bench = new Bench();
    const lost = refund(bench, FROM);
    bench.of('user').answer(LOST);
    expect(lost).toEqual([LOST]);
    bench.ruleSet = ruleSetOf(7, 'rules: [{ id: user, key: user, windows: { limit: 2, per: minute } }]');
    expect(refund(bench, { ip: '10.0.0.1' })).toEqual([{ kind: 'unlimited', rulesVersion: 7 }]);
    bench.ruleSet = 'starting';
    expect(refund(bench, FROM)).toMatchObject([{ kind: 'unavailable', reason: 'starting' }]);
  });
});

describe('a refund by descriptors of a customer', () => {
  const DOCUMENT = `
rules:
  - { id: each, key: user, windows: { limit: 10, per: minute } }
  - { id: free, match: { tier: free }, key: user, group: tier, windows: { limit: 2, per: minute } }
  - { id: pro, match: { tier: pro }, key: customer, group: tier, windows: { limit: 9, per: minute } }
`;
  const PRO = { version: 5, tier: 'pro', overrides: [], isBlocked: false } as const;
  const REFUNDED = { ...FROM, customer: 'acme', tier: 'free' };
  const decided = { term: 1, index: 4, timeMillis: 7 };

  it("goes to the key that the customer's record determines, even if this node had not read the record", () => {
    const bench = new Bench();
    bench.ruleSet = ruleSetOf(7, DOCUMENT);
    const reported = refund(bench, REFUNDED);
    expect(bench.asked.map(({ request }) => request)).toEqual([
      { ask: 'customer', userId: 'customer=acme', action: { type: 'read' } },
    ]);
    bench.of('customer').answer({ kind: 'customer', outcome: { isDone: true, record: PRO, decided } });
    expect(bench.refunds()).toEqual([{ ask: 'refund', userId: 'customer=acme', requestId: 'r1' }]);
    bench.of('customer').answer({ kind: 'refund', refund: OF_ATTEMPT });
    expect(bench.refunds()[1]).toEqual({ ask: 'refund', userId: 'user=ada', requestId: '~10.1' });
    bench.of('user').answer({ kind: 'refund', refund: REFUND });
    expect(reported).toEqual([{ kind: 'refund', refund: OF_ATTEMPT, kept: [] }]);
  });

  it('gives nothing back while the record cannot be read', () => {
    const bench = new Bench();
    bench.ruleSet = ruleSetOf(7, DOCUMENT);
    const reported = refund(bench, REFUNDED);
    bench.of('customer').answer(LOST);
    expect([reported, bench.refunds()]).toEqual([[LOST], []]);
  });
});
