/** Tests peeks at a key: under all rules that count by such keys, under one rule, or under one window. */
import { beforeEach, describe, expect, it } from 'vitest';
import type { LookAnswer, LookQuestion, LookRequest } from '../../src/api/look.ts';
import { Looks } from '../../src/matching/looks.ts';
import type { RuleBook } from '../../src/matching/rule-book.ts';
import { bookOf } from './bench.ts';

const DOCUMENT = `
rules:
  - { id: per-user, key: user, windows: [{ limit: 5, per: minute }, { limit: 100, per: day }] }
  - { id: login, key: user, named: true, windows: { limit: 1, per: hour } }
  - { id: pair, key: [ip, user], windows: { limit: 2, per: hour } }
  - { id: off, key: user, enabled: false, windows: { limit: 2, per: hour } }
  - { id: free, key: user, match: { plan: gold }, group: gold, unlimited: true }
`;
const USER_WINDOWS = ['per-user/minute', 'per-user/day', 'login/hour'];

let book: RuleBook | 'starting';
let asked: LookRequest[];
let told: { readonly answer: LookAnswer; readonly partition: number }[];

/** The partition knows more limits of the key than the rules in force have. */
function standing(): LookAnswer {
  const ids = [...USER_WINDOWS, 'left/hour'];
  const limit = { limit: 5, windowMillis: 60_000, remaining: 3, retryAfterMillis: 0, resetMillis: 0 };
  return {
    kind: 'standing',
    standing: {
      limits: ids.map((ruleId) => ({ ruleId, ...limit })),
      decided: { term: 1, index: 5, timeMillis: 8 },
      rulesVersion: 7,
    },
  };
}

function look(question: LookQuestion): void {
  const looks = new Looks({
    book: () => book,
    ask: (request, done) => {
      asked.push(request);
      done(standing(), 3);
    },
  });
  looks.ask(question, (answer, partition) => told.push({ answer, partition }));
}

function limitsTold(): readonly string[] {
  const [{ answer } = { answer: undefined }] = told;
  return answer?.kind === 'standing' ? answer.standing.limits.map(({ ruleId }) => ruleId) : [];
}

beforeEach(() => {
  book = bookOf(7, DOCUMENT);
  asked = [];
  told = [];
});

describe('a look at a key', () => {
  it('shows all windows of the rules in force that count by such keys, and no others', () => {
    look({ key: 'user=ada' });
    expect(asked).toEqual([{ ask: 'look', userId: 'user=ada', ruleId: undefined }]);
    expect(limitsTold()).toEqual(USER_WINDOWS);
    expect(told[0]?.partition).toBe(3);
  });

  it('shows the windows of one rule', () => {
    look({ key: 'user=ada', rule: 'per-user' });
    expect(limitsTold()).toEqual(['per-user/minute', 'per-user/day']);
  });

  it.each(['per-user/day', '100/60000ms'])('asks for the one limit that is called %s', (rule) => {
    look({ key: 'user=ada', rule });
    expect(asked).toEqual([{ ask: 'look', userId: 'user=ada', ruleId: rule }]);
  });

  it('shows the windows of rules for nested descriptors by the values that they count', () => {
    const nested = [
      '{ key: tenant, descriptors: [{ key: user, rate_limit: { unit: minute, requests_per_unit: 5 } }] }',
      '{ key: plan, value: free, descriptors: [{ key: user, rate_limit: { unit: day, requests_per_unit: 9 } }] }',
    ];
    const book = bookOf(7, `domain: d\ndescriptors: [${nested.join(', ')}]`);
    expect(book.limitIdsOf('tenant=a,user=ada')).toEqual([expect.stringMatching(/\/minute$/)]);
    expect(book.limitIdsOf('user=ada')).toEqual([expect.stringMatching(/\/day$/)]);
    expect(book.limitIdsOf('tenant=a')).toEqual([]);
  });

  it('asks for the one window of a rule that has no other', () => {
    look({ key: 'ip=10.0.0.1,user=ada', rule: 'pair' });
    expect(asked).toMatchObject([{ userId: 'ip=10.0.0.1,user=ada', ruleId: 'pair/hour' }]);
  });

  it.each(['pair', 'off', 'free', 'nobody', 'per-user/hour'])(
    'under the rule %s is wrong for a user: that has no limit by such keys',
    (rule) => {
      look({ key: 'user=ada', rule });
      expect(asked).toEqual([]);
      expect(told).toMatchObject([{ answer: { kind: 'invalid', field: 'rule' } }]);
      expect(JSON.stringify(told)).toContain(`'${rule}' does not`);
    },
  );

  it('is refused at once while this node knows no rules', () => {
    book = 'starting';
    look({ key: 'user=ada' });
    expect(told).toEqual([
      { answer: { kind: 'unavailable', reason: 'starting', proposed: false }, partition: 0 },
    ]);
  });
});
