/** Tests that a request is matched again if a partition has other rules than this node. */
import { describe, expect, it } from 'vitest';
import { Bench, ruleSetOf, decision, FROM } from './bench.ts';

describe('while the rules change', () => {
  it.each([
    [
      'the partition decides by other rules',
      { kind: 'unavailable', reason: 'rules_changed', proposed: false } as const,
    ],
    [
      'the partition has no such rule',
      { kind: 'invalid', field: 'rule', message: 'there is no rule' } as const,
    ],
  ])('a request is matched again when %s', (_, answer) => {
    const bench = new Bench();
    bench.ask(FROM);
    bench.of('ip').answer(decision());
    bench.of('*').answer(answer);
    expect(bench.reported).toEqual([]);
    expect(bench.refunds()).toHaveLength(1);
    bench.ruleSet = ruleSetOf(8, 'rules: [{ id: user, key: user, windows: { limit: 2, per: minute } }]');
    bench.requests.tick();
    expect(bench.of('user').request).toMatchObject({ matchedBy: 8 });
    expect(bench.of('user').deadlineMillis).toBe(1_500);
    bench.of('user').answer(decision());
    expect(bench.reported).toHaveLength(1);
  });

  it('a request is refused at its deadline, and when too many wait', () => {
    const bench = new Bench();
    bench.ruleSet = ruleSetOf(7, 'rules: [{ id: user, key: user, windows: { limit: 2, per: minute } }]');
    const changed = { kind: 'unavailable', reason: 'rules_changed', proposed: false } as const;
    for (const user of ['ada', 'bob', 'eve']) {
      bench.ask({ user });
      bench.of('user').answer(changed);
    }
    expect(bench.reported).toEqual([{ answer: { ...changed, reason: 'overloaded' }, partition: 0 }]);
    bench.requests.tick();
    bench.now = 1_600;
    bench.of('user').answer(changed);
    expect(bench.reported[1]).toEqual({ answer: changed, partition: 0 });
  });

  it('a node without rules answers that it is starting', () => {
    const bench = new Bench();
    bench.ruleSet = 'starting';
    bench.ask(FROM);
    expect(bench.reported.map(({ answer }) => answer)).toMatchObject([
      { kind: 'unavailable', reason: 'starting' },
    ]);
  });
});
