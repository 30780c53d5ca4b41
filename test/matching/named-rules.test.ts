/** Tests which rules apply: all that match, one that is asked for by id, or one that the request states itself. */
import { describe, expect, it } from 'vitest';
import { questionOf } from '../../src/api/question.ts';
import { definitionsOfTable } from '../../src/rules/limiter-rules.ts';
import { RuleSet } from '../../src/matching/rule-set.ts';
import { Bench, ruleSetOf, statusBy } from './bench.ts';

const DOCUMENT = `
rules:
  - { id: per-user, key: user, windows: { limit: 2, per: minute } }
  - { id: all, windows: { limit: 100, per: minute } }
  - { id: login, key: user, named: true, windows: { limit: 5, per: hour } }
  - { id: by-ip, key: ip, named: true, windows: { limit: 5, per: hour } }
`;

function limitsOf(question: Parameters<RuleSet['limitsFor']>[0], ruleSet = ruleSetOf(7, DOCUMENT)): unknown {
  const found = ruleSet.limitsFor(question);
  return found.kind === 'limits' ? found.enforced.map(({ userId, rule }) => `${rule.id} ${userId}`) : found;
}

describe('a request', () => {
  it('with a userId is one with the descriptor user, under every rule that matches', () => {
    const descriptors = new Map([['user', 'ada']]);
    expect(limitsOf({ descriptors })).toEqual(['per-user user=ada', 'all *']);
    expect(limitsOf(questionOf({ userId: 'ada' }))).toEqual(limitsOf({ descriptors }));
  });

  it('that names a rule is under that rule only', () => {
    expect(limitsOf(questionOf({ userId: 'ada', rule: 'login' }))).toEqual(['login user=ada']);
  });

  it.each([
    ['per-user', 'rule', /named: true/],
    ['nobody', 'rule', /no 'nobody'/],
    ['100/minute', 'rule', /no '100\/minute'; to state a limit yourself, write 100\/60000ms$/],
    ['by-ip', 'descriptors', /must have ip/],
  ])('that names the rule %s is invalid in %s', (rule, field, message) => {
    const found = limitsOf(questionOf({ userId: 'ada', rule }));
    expect(found).toMatchObject({
      kind: 'invalid',
      field,
      message: expect.stringMatching(message) as string,
    });
  });

  it('finds the same limits, whichever requests the rule set has matched before', () => {
    const document = `${DOCUMENT}  - { id: dear, key: user, named: true, windows: { limit: 5, per: hour }, shadow: true }\n`;
    const ways = [undefined, 'login', 'dear', 'per-user', 'by-ip', 'nobody', '3/60000ms'];
    const users = ['ada', 'bob', 'a%b', 'x,y', 'user'];
    const questions = ways.flatMap((rule) =>
      users.flatMap((userId) => [1, 3, 1_000_000].map((cost) => questionOf({ userId, rule, cost }))),
    );
    const used = ruleSetOf(7, document);
    for (const question of [...questions, ...questions.toReversed()])
      expect(used.limitsFor(question)).toEqual(ruleSetOf(7, document).limitsFor(question));
    // A further descriptor takes another path, and finds the same limits.
    for (const { descriptors, ...rest } of questions) {
      const more = new Map(descriptors).set('other', 'x');
      const found = used.limitsFor({ descriptors, ...rest });
      expect(used.limitsFor({ descriptors: more, ...rest })).toEqual(found);
    }
  });

  it('that states its limit is under that limit only, which counts by user', () => {
    expect(limitsOf(questionOf({ userId: 'ada', rule: '3/60000ms' }))).toEqual(['3/60000ms user=ada']);
    expect(limitsOf({ descriptors: new Map([['ip', '10.0.0.1']]), rule: '3/60000ms' })).toMatchObject({
      kind: 'invalid',
      field: 'descriptors',
    });
  });

  it('is under the first rule of a table, and names the others by their ids', () => {
    const rules = ['default', 'login'].map(
      (id) => ({ id, limit: 3, windowMillis: 1_000, clock: 'cluster' }) as const,
    );
    const ruleSet = new RuleSet(1, definitionsOfTable(rules));
    expect(limitsOf(questionOf({ userId: 'ada' }), ruleSet)).toEqual(['default user=ada']);
    expect(limitsOf(questionOf({ userId: 'ada', rule: 'login' }), ruleSet)).toEqual(['login user=ada']);
    expect(limitsOf(questionOf({ userId: 'ada', rule: 'default' }), ruleSet)).toMatchObject({
      field: 'rule',
    });
  });
});

describe('a rule that this node does not know', () => {
  it('is refused only after a leader confirms the rules of this node', () => {
    const bench = new Bench();
    bench.inForce = statusBy(8);
    bench.ask({ user: 'ada' }, { rule: 'login' });
    expect(bench.reported).toEqual([]);
    bench.ruleSet = ruleSetOf(8, DOCUMENT);
    bench.requests.tick();
    expect(bench.asked.map(({ request }) => request)).toMatchObject([{ userId: 'user=ada', matchedBy: 8 }]);
    bench.ask({ user: 'ada' }, { rule: 'nobody' });
    expect(bench.reported).toMatchObject([{ answer: { kind: 'invalid', field: 'rule' } }]);
  });
});

describe('a peek at a key', () => {
  it('reports the rules that count by such keys, and no others', () => {
    const ruleSet = ruleSetOf(7, DOCUMENT);
    expect(ruleSet.limitIdsOf('user=ada')).toHaveLength(2);
    expect(ruleSet.limitIdsOf('*')).toHaveLength(1);
    expect(ruleSet.limitIdsOf('user=ada', 'login')).toHaveLength(1);
    expect(ruleSet.limitIdsOf('user=ada', 'by-ip')).toBeUndefined();
    expect(ruleSet.limitIdsOf('tenant=acme')).toEqual([]);
  });
});

/** With one more rule, which matches one user only. */
function withBoss(isAsked: boolean): string {
  const user = isAsked ? 'boss' : '"*"';
  return `${DOCUMENT}  - { id: boss, match: { user: ${user} }, key: user, group: boss, windows: { limit: 1, per: day } }\n`;
}

describe('a request that names only its user', () => {
  it('is under the same limits as one that is matched rule by rule, for any user id', () => {
    for (const userId of ['ada', 'boss', 'a,b', '50%', 'x'.repeat(256)])
      for (const isAsked of [false, true]) {
        const quick = limitsOf(questionOf({ userId }), ruleSetOf(7, DOCUMENT)) as string[];
        const slow = limitsOf(questionOf({ userId }), ruleSetOf(7, withBoss(isAsked))) as string[];
        expect(slow.filter((limit) => !limit.startsWith('boss'))).toEqual(quick);
      }
  });
});
