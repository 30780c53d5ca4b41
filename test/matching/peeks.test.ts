/** Tests peeks at a key: under all rules that count by such keys, under one rule, or under one window. */
import { beforeEach, describe, expect, it } from 'vitest';
import type { PeekAnswer, PeekQuestion, PeekRequest } from '../../src/api/peek.ts';
import { Peeks } from '../../src/matching/peeks.ts';
import type { RuleSet } from '../../src/matching/rule-set.ts';
import { ruleSetOf } from './bench.ts';

const DOCUMENT = `
rules:
  - { id: per-user, key: user, windows: [{ limit: 5, per: minute }, { limit: 100, per: day }] }
  - { id: login, key: user, named: true, windows: { limit: 1, per: hour } }
  - { id: pair, key: [ip, user], windows: { limit: 2, per: hour } }
  - { id: off, key: user, enabled: false, windows: { limit: 2, per: hour } }
  - { id: free, key: user, match: { plan: gold }, group: gold, unlimited: true }
`;
const USER_WINDOWS = ['per-user/minute', 'per-user/day', 'login/hour'];

let ruleSet: RuleSet | 'starting';
let asked: PeekRequest[];
let reported: { readonly answer: PeekAnswer; readonly partition: number }[];

/** A partition that knows more limits of the key than the rules in force have. */
function keyStatus(): PeekAnswer {
  const ids = [...USER_WINDOWS, 'left/hour'];
  const limit = { limit: 5, windowMillis: 60_000, remaining: 3, retryAfterMillis: 0, resetMillis: 0 };
  return {
    kind: 'keyStatus',
    keyStatus: {
      limits: ids.map((ruleId) => ({ ruleId, ...limit })),
      decided: { term: 1, index: 5, timeMillis: 8 },
      rulesVersion: 7,
    },
  };
}

function peek(question: PeekQuestion): void {
  const peeks = new Peeks({
    ruleSet: () => ruleSet,
    ask: (request, done) => {
      asked.push(request);
      done(keyStatus(), 3);
    },
  });
  peeks.ask(question, (answer, partition) => reported.push({ answer, partition }));
}

function limitsReported(): readonly string[] {
  const [{ answer } = { answer: undefined }] = reported;
  return answer?.kind === 'keyStatus' ? answer.keyStatus.limits.map(({ ruleId }) => ruleId) : [];
}

beforeEach(() => {
  ruleSet = ruleSetOf(7, DOCUMENT);
  asked = [];
  reported = [];
});

describe('a peek at a key', () => {
  it('shows all windows of the rules in force that count by such keys, and no others', () => {
    peek({ key: 'user=ada' });
    expect(asked).toEqual([{ ask: 'peek', userId: 'user=ada', ruleId: undefined }]);
    expect(limitsReported()).toEqual(USER_WINDOWS);
    expect(reported[0]?.partition).toBe(3);
  });

  it('shows the windows of one rule', () => {
    peek({ key: 'user=ada', rule: 'per-user' });
    expect(limitsReported()).toEqual(['per-user/minute', 'per-user/day']);
  });

  it.each(['per-user/day', '100/60000ms'])('shows the one limit with the id %s', (rule) => {
    peek({ key: 'user=ada', rule });
    expect(asked).toEqual([{ ask: 'peek', userId: 'user=ada', ruleId: rule }]);
  });

  it('shows the windows of rules for nested descriptors by the values that they count', () => {
    const nested = [
      '{ key: tenant, descriptors: [{ key: user, rate_limit: { unit: minute, requests_per_unit: 5 } }] }',
      '{ key: plan, value: free, descriptors: [{ key: user, rate_limit: { unit: day, requests_per_unit: 9 } }] }',
    ];
    const ruleSet = ruleSetOf(7, `domain: d\ndescriptors: [${nested.join(', ')}]`);
    expect(ruleSet.limitIdsOf('tenant=a,user=ada')).toEqual([expect.stringMatching(/\/minute$/)]);
    expect(ruleSet.limitIdsOf('user=ada')).toEqual([expect.stringMatching(/\/day$/)]);
    expect(ruleSet.limitIdsOf('tenant=a')).toEqual([]);
  });

  it('shows the only window of a rule', () => {
    peek({ key: 'ip=10.0.0.1,user=ada', rule: 'pair' });
    expect(asked).toMatchObject([{ userId: 'ip=10.0.0.1,user=ada', ruleId: 'pair/hour' }]);
  });

  it.each(['pair', 'off', 'free', 'nobody', 'per-user/hour'])(
    'under the rule %s is invalid for a user: the rule has no limit for such keys',
    (rule) => {
      peek({ key: 'user=ada', rule });
      expect(asked).toEqual([]);
      expect(reported).toMatchObject([{ answer: { kind: 'invalid', field: 'rule' } }]);
      expect(JSON.stringify(reported)).toContain(`'${rule}' does not`);
    },
  );

  it('is refused at once while this node knows no rules', () => {
    ruleSet = 'starting';
    peek({ key: 'user=ada' });
    expect(reported).toEqual([
      { answer: { kind: 'unavailable', reason: 'starting', proposed: false }, partition: 0 },
    ]);
  });
});
