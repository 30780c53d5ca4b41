/**
 * Tests requests that no rule matches, when the document denies them: nothing is charged, and the rules must be in
 * force.
 */
import { beforeEach, describe, expect, it } from 'vitest';
import type { ListedAnswer, ListedRequest } from '../../src/api/listed.ts';
import type { PeekAnswer } from '../../src/api/peek.ts';
import { Peeks } from '../../src/matching/peeks.ts';
import { Bench, ruleSetOf, decision, GONE, statusBy } from './bench.ts';

const RULES = `
rules:
  - { id: user, key: user, windows: { limit: 2, per: minute } }
  - { id: net, key: ip/24, windows: { limit: 2, per: minute } }
  - { id: shadowed, key: apiKey, windows: { limit: 1, per: minute }, shadow: true }
`;
const DENY = `unmatched: deny${RULES}`;
const SHADOW = `unmatched: shadow${RULES}`;
const MISSPELT = { usr: 'ada' };
const UNMATCHED = { kind: 'unmatched', rulesVersion: 7 };
const WOULD_DENY = { ruleId: 'unmatched', key: '*', limit: 0, retryAfterMillis: 0 };

let bench: Bench;
beforeEach(() => {
  bench = new Bench();
  bench.ruleSet = ruleSetOf(7, DENY);
});

function reported(): unknown[] {
  return bench.reported.map(({ answer }) => answer);
}

describe('a request that no rule matches', () => {
  it('is denied without asking a partition for a grant, unless unmatched is allow or absent', () => {
    bench.ask(MISSPELT);
    bench.ruleSet = ruleSetOf(7, `unmatched: allow${RULES}`);
    bench.ask(MISSPELT);
    bench.ruleSet = ruleSetOf(7, RULES);
    bench.ask(MISSPELT);
    const free = { kind: 'unlimited', rulesVersion: 7 };
    expect(reported()).toEqual([UNMATCHED, free, free]);
    expect(bench.asked).toEqual([]);
  });

  it('is denied also if it names only a user', () => {
    bench.ruleSet = ruleSetOf(
      7,
      'unmatched: deny\nrules: [{ id: net, key: ip, windows: { limit: 2, per: minute } }]',
    );
    bench.ask({ user: 'ada' });
    expect(reported()).toEqual([UNMATCHED]);
  });

  it('is decided normally if a rule matches, also a stated, unlimited or shadow one', () => {
    bench.ruleSet = ruleSetOf(7, `${DENY}  - { id: boss, match: { tier: boss }, unlimited: true }\n`);
    bench.ask({ user: 'ada' });
    bench.ask({ user: 'ada', usr: 'ada' }, { rule: '5/1000ms' });
    expect(bench.asked.map(({ request }) => 'ruleId' in request && request.ruleId)).toEqual([
      'user/minute',
      '5/1000ms',
    ]);
    bench.ask({ tier: 'boss' });
    bench.ask({ apiKey: 'k' });
    expect(bench.reported.map(({ answer }) => answer.kind)).toEqual(['unlimited', 'unlimited']);
  });

  it('is denied only by rules in force: a node with older ones waits for them', () => {
    bench.inForce = statusBy(8);
    bench.ask(MISSPELT);
    bench.requests.tick();
    expect(reported()).toEqual([]);
    bench.ruleSet = ruleSetOf(8, RULES);
    bench.inForce = statusBy(8);
    bench.requests.tick();
    expect(reported()).toEqual([{ kind: 'unlimited', rulesVersion: 8 }]);
  });

  it('is unavailable if the rules cannot be confirmed, for any fail modes', () => {
    bench.ruleSet = ruleSetOf(
      7,
      'unmatched: deny\nrules: [{ id: u, key: user, windows: { limit: 2, per: day }, failMode: open }]',
    );
    bench.inForce = GONE;
    bench.ask(MISSPELT);
    expect(reported()).toEqual([GONE]);
  });

  it('does not change the fail modes of other rules', () => {
    bench.ruleSet = ruleSetOf(
      7,
      'unmatched: deny\nrules: [{ id: u, key: user, unlimited: true, failMode: open }]',
    );
    bench.inForce = GONE;
    bench.ask({ user: 'ada' });
    expect(reported()).toEqual([{ kind: 'unlimited', rulesVersion: 7 }]);
  });

  it('of a customer may match a rule by the tier in its record', () => {
    bench.ruleSet = ruleSetOf(
      7,
      'unmatched: deny\nrules: [{ id: gold, match: { tier: gold }, key: ip, windows: { limit: 2, per: day } }]',
    );
    const decided = { term: 1, index: 5, timeMillis: 8 };
    bench.ask({ customer: 'acme', ip: '10.0.0.1' });
    const record = { version: 3, tier: 'gold', overrides: [], isBlocked: false };
    bench.asked[0]!.answer({ kind: 'customer', outcome: { isDone: true, record, decided } } as never);
    expect(reported()).toEqual([]);
    expect(bench.asked.at(-1)?.request).toMatchObject({ userId: 'customer=acme' });
    bench.ask({ customer: 'nobody', ip: '10.0.0.1' });
    const none = { version: 0, overrides: [], isBlocked: false };
    bench.asked
      .at(-1)!
      .answer({ kind: 'customer', outcome: { isDone: true, record: none, decided } } as never);
    expect(reported()).toEqual([UNMATCHED]);
  });

  it('is let through if unmatched is shadow, counted, and reported as a shadow denial', () => {
    bench.ruleSet = ruleSetOf(7, SHADOW);
    bench.ask(MISSPELT);
    bench.ask({ user: 'ada' });
    bench.of('user').answer(decision());
    expect(reported()).toMatchObject([
      { kind: 'unlimited', rulesVersion: 7, wouldDeny: [WOULD_DENY] },
      { kind: 'decision' },
    ]);
    expect(bench.reported[1]?.answer).not.toHaveProperty('wouldDeny');
    expect(bench.tried).toEqual([{ ruleId: 'unmatched', wouldAllow: false }]);
  });
});

type List = ListedRequest['lists'][number];

function listOf(entries: Readonly<Record<string, string>>, more: Partial<List> = {}): List {
  return { entries: Object.entries(entries).map(([key, value]) => ({ key, value })), cost: 1, ...more };
}

function askLists(lists: readonly List[], domain = 'edge'): ListedAnswer[] {
  const answers: ListedAnswer[] = [];
  bench.requests.askListed(
    { domain, lists },
    () => expect.fail('no peek is expected'),
    (answer) => answers.push(answer),
  );
  return answers;
}

describe('a request of lists', () => {
  it('is denied if a list has no matching rule, and charged nowhere', () => {
    const lists = [listOf({ user: 'ada' }), listOf(MISSPELT), listOf({ user: 'ada' }, { cost: 0 })];
    expect(askLists(lists)).toEqual([
      {
        kind: 'listed',
        allowed: false,
        lists: [
          { kind: 'limited', isOver: false, name: 'user' },
          { kind: 'unmatched' },
          { kind: 'limited', isOver: false, name: 'user' },
        ],
        decided: UNMATCHED,
      },
    ]);
    expect(bench.asked).toEqual([]);
  });

  it('is denied in another domain than that of the document, unless it states its limit', () => {
    bench.ruleSet = ruleSetOf(
      7,
      'domain: edge\nunmatched: deny\ndescriptors: [{ key: user, rate_limit: { unit: day, requests_per_unit: 1 } }]',
    );
    expect(askLists([listOf({ user: 'ada' })], 'egde')).toMatchObject([{ allowed: false }]);
    askLists([listOf({ user: 'ada' }, { limit: { limit: 3, windowMillis: 1_000 } })], 'egde');
    askLists([listOf({ user: 'ada' })]);
    expect(bench.asked).toHaveLength(2);
  });

  it('is not denied for a list whose rule is replaced, or that ends without a limit', () => {
    bench.ruleSet = ruleSetOf(
      7,
      `domain: edge
unmatched: deny
descriptors:
  - { key: user, rate_limit: { name: per_user, unit: day, requests_per_unit: 1 } }
  - { key: vip, rate_limit: { unlimited: true, replaces: [{ name: per_user }] } }
  - { key: path, value: /health }
`,
    );
    expect(askLists([listOf({ user: 'ada' }), listOf({ vip: 'x' })])).toMatchObject([
      { allowed: true, lists: [{ kind: 'free' }, { kind: 'unlimited' }] },
    ]);
    expect(askLists([listOf({ path: '/health' })])).toMatchObject([
      { allowed: true, lists: [{ kind: 'free' }] },
    ]);
  });

  it('is charged for lists with a rule if unmatched is shadow, and counted', () => {
    bench.ruleSet = ruleSetOf(7, SHADOW);
    const answers = askLists([listOf({ user: 'ada' }), listOf(MISSPELT)]);
    bench.of('user').answer(decision());
    expect(answers).toMatchObject([{ allowed: true, lists: [{ kind: 'limited' }, { kind: 'free' }] }]);
    expect(bench.tried).toEqual([{ ruleId: 'unmatched', wouldAllow: false }]);
  });
});

function peek(key: string): PeekAnswer[] {
  const answers: PeekAnswer[] = [];
  const peeks = new Peeks({ ruleSet: () => bench.ruleSet, ask: (_, done) => done(bench.inForce, 0) });
  peeks.ask({ key }, (answer) => answers.push(answer));
  return answers;
}

describe('a peek at a key', () => {
  it('reports that a request with this key alone is denied', () => {
    const { keyStatus } = statusBy(7) as Extract<PeekAnswer, { kind: 'keyStatus' }>;
    const unmatched = [{ kind: 'keyStatus', keyStatus: { ...keyStatus, isUnmatched: true } }];
    for (const key of ['usr=ada', 'tenant=a%2cb', 'tier=free,usr=ada']) expect(peek(key)).toEqual(unmatched);
    for (const key of ['user=ada', 'ip/24=10.1.2.0', 'apiKey=k', 'user=ada,usr=ada', '*'])
      expect(peek(key)).toEqual([{ kind: 'keyStatus', keyStatus }]);
    bench.ruleSet = ruleSetOf(7, SHADOW);
    expect(peek('usr=ada')).toEqual([{ kind: 'keyStatus', keyStatus }]);
  });

  it('reports that only if the rules are in force', () => {
    bench.inForce = statusBy(8);
    expect(peek('usr=ada')).toMatchObject([{ kind: 'unavailable', reason: 'rules_changed' }]);
  });
});
