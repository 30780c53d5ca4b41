import { describe, expect, it } from 'vitest';
import { budgetsOf, settledBy } from './checkers/budgets.ts';
import { checkLinearizability } from './checkers/linearizability.ts';
import { checkRefusals, MALFORMED_USER } from './checkers/refusals.ts';
import type { CheckResult } from './checkers/result.ts';
import type { Operation } from './history.ts';
import { answer, checkAll, violations } from './judged.ts';
import type { NemesisBand } from './nemesis-log.ts';

describe('single rules', () => {
  // 100 ms are widened to 102: the drift, and the rounding.
  it('a grant exactly a window old is out, and one a millisecond younger counts', () => {
    expect(violations([answer(10), answer(112)])).toEqual([]);
    expect(violations([answer(10), answer(111)])).toEqual([
      'certificate',
      'linearizability-strict',
      'linearizability-lenient',
    ]);
    expect(violations([answer(10), answer(50)])).toContain('real-time');
  });

  it('a denial after exactly a window is wrong, though real time alone cannot show it', () => {
    const denial = answer(112, { allowed: false, status: 429, index: 10 });
    expect(violations([answer(10), denial])).toEqual(['certificate', 'linearizability-strict']);
    expect(violations([answer(10), { ...denial, timeMillis: 111 }])).toEqual([]);
  });

  it('an answer that arrived before a request was made comes before it in the log', () => {
    const [early, late] = [answer(10, { index: 9 }), answer(500, { index: 8, timeMillis: 10 })];
    expect(violations([early, { ...late, user: 'bob' }])).toContain('certificate');
  });

  it('group time may lag behind real time, but never run ahead of it', () => {
    expect(violations([answer(10), answer(500, { timeMillis: 400 })])).toEqual([]);
    expect(violations([answer(10), answer(500, { timeMillis: 600 })])).toEqual(['certificate']);
  });

  it('one entry has one term and one time', () => {
    const other = { user: 'bob', index: 10 };
    expect(violations([answer(10), answer(10, other)])).toEqual([]);
    expect(violations([answer(10), answer(10, { ...other, term: 2 })])).toEqual(['certificate']);
    expect(violations([answer(10), answer(10, { ...other, timeMillis: 9 })])).toEqual(['certificate']);
  });

  it('a lost answer explains a denial unless the log shows that nothing was charged', () => {
    const lost = answer(10, { class: 'info', allowed: null, status: 0, index: null, timeMillis: null });
    const denial = answer(50, { allowed: false, status: 429 });
    expect(violations([lost, denial])).toEqual([]);
    expect(violations([lost, denial], new Map([[lost, { kind: 'uncharged' }]]))).toEqual([
      'certificate',
      'false-denials',
    ]);
    const at = { group: 0, index: 10, position: null, timeMillis: 10 };
    expect(violations([lost, denial], new Map([[lost, { kind: 'granted', at: [at] }]]))).toEqual([]);
    const elsewhere = { ...at, timeMillis: 10, index: 60 };
    expect(violations([lost, denial], new Map([[lost, { kind: 'logged', at: [elsewhere] }]]))).toEqual([
      'certificate',
    ]);
  });

  it('a user whose bytes are not UTF-8 is refused, if there is an answer', () => {
    const user = `${MALFORMED_USER}ff`;
    const refused = answer(10, { user, class: 'fail', allowed: null, status: 400 });
    const lost = answer(10, { user, class: 'info', allowed: null, status: 0 });
    expect(checkRefusals([refused, lost, answer(10)])).toMatchObject({
      status: 'ok',
      counts: { asked: 2, refused: 1 },
    });
    expect(checkRefusals([answer(10, { user })]).status).toBe('violation');
    expect(checkRefusals([{ ...refused, status: 503 }]).status).toBe('violation');
  });

  it('a retry has the same answer, and is not a second grant', () => {
    const first = answer(10);
    const retry = { ...first, process: 99, invokeNanos: 20e6, completeNanos: 21e6 };
    expect(violations([first, retry])).toEqual([]);
    expect(violations([first, { ...retry, remaining: 1 }])).toEqual(['certificate']);
    expect(violations([first, answer(300, { requestId: first.requestId })])).toEqual(['certificate']);
    const denied = answer(50, { requestId: first.requestId, allowed: false, status: 429 });
    expect(violations([first, denied])).toEqual(['certificate']);
  });

  it('grants of one entry are checked together, in the order of their remaining limits', () => {
    const of3 = { limit: 3, index: 10, timeMillis: 10 };
    const batch = [2, 0, 1].map((remaining, i) => answer(10, { ...of3, remaining, requestId: `b${i}` }));
    expect(violations(batch)).toEqual([]);
    expect(violations([...batch.slice(0, 2), answer(10, { ...of3, remaining: 2, requestId: 'b9' })])).toEqual(
      ['certificate'],
    );
  });

  it('grants of one entry with positions are checked in the order of the positions', () => {
    const of3 = { limit: 3, index: 10, timeMillis: 10 };
    const at = (position: number, remaining: number): Operation =>
      answer(10, { ...of3, position, remaining, requestId: `b${position}` });
    expect(violations([at(4, 0), at(0, 2), at(3, 1)])).toEqual([]);
    expect(violations([at(4, 0), at(0, 1), at(3, 2)])).toEqual(['certificate']);
    const denied = { ...at(2, 0), allowed: false, status: 429, requestId: 'd', cost: 3 };
    expect(violations([at(0, 2), at(3, 1), at(4, 0), { ...denied, remaining: 2 }])).toEqual([]);
    expect(violations([at(0, 2), at(3, 1), at(4, 0), { ...denied, remaining: 1 }])).toEqual(['certificate']);
    // A denial without a position was read from the state after the whole entry.
    const read = { ...denied, position: null };
    expect(violations([at(0, 2), at(3, 1), at(4, 0), { ...read, remaining: 0 }])).toEqual([]);
    expect(violations([at(0, 2), at(3, 1), at(4, 0), { ...read, remaining: 1 }])).toEqual(['certificate']);
  });

  it('two grants never have one receipt', () => {
    const first = answer(10, { limit: 9, position: 0, remaining: 8 });
    const other = answer(10, { limit: 9, position: 0, remaining: 8, user: 'bob', requestId: 'b' });
    expect(violations([first, other])).toEqual(['certificate']);
    expect(violations([first, { ...other, position: 1 }])).toEqual([]);
    expect(violations([first, { ...first, process: 99, invokeNanos: 20e6, completeNanos: 21e6 }])).toEqual(
      [],
    );
  });

  it('a repetition after the horizon is another request, and may be charged again', () => {
    const horizon = { requestIdHorizonMillis: 1_000, lateMillis: 100 };
    const lost = answer(10, { requestId: 'r', class: 'info', allowed: null, status: 0, index: null });
    const again = { requestId: 'r', index: 5 };
    expect(budgetsOf([lost, answer(500, again)], horizon)[0]?.unknowns).toHaveLength(0);
    expect(budgetsOf([lost, answer(2_000, again)], horizon)[0]?.unknowns).toHaveLength(1);
  });

  it('an attempt answered from memory shortly before its id is forgotten may also be charged by another node', () => {
    const horizon = { requestIdHorizonMillis: 1_000, lateMillis: 100 };
    const first = answer(10, { requestId: 'r', index: 5 });
    const again = (millis: number): Operation => ({
      ...first,
      process: 99,
      invokeNanos: millis * 1e6,
      completeNanos: (millis + 1) * 1e6,
    });
    expect(budgetsOf([first, again(800)], horizon)[0]?.unknowns).toHaveLength(0);
    const [budget] = budgetsOf([first, again(980)], horizon);
    expect(budget?.unknowns).toHaveLength(1);
    if (budget === undefined) throw new Error('one user has a budget');
    const fates = new Map([[budget.unknowns[0]?.op ?? first, { kind: 'uncharged' } as const]]);
    expect(settledBy(fates, [budget])[0]?.unknowns).toHaveLength(0);
  });

  it('a false denial is an error in a healthy cluster, and is only counted under faults', () => {
    const operations = [answer(10), answer(400, { allowed: false, status: 429, index: 10, timeMillis: 60 })];
    const check = (bands: readonly NemesisBand[]): CheckResult | undefined =>
      checkAll(operations, bands).at(-1);
    expect(check([])).toMatchObject({ status: 'violation', counts: { falseWhenHealthy: 1 } });
    const band = { kind: 'kill', nodes: [], startNanos: 0, endNanos: 250e6 };
    expect(check([band])).toMatchObject({ status: 'ok', counts: { falseUnderFaults: 1 } });
  });

  it('a search that takes too long does not prove linearizability', () => {
    const budgets = budgetsOf([answer(10), answer(50)]);
    const options = { driftPpm: 0, bands: [], answersMax: 10, stepsMax: 1, mode: 'strict' } as const;
    expect(checkLinearizability(budgets, options).status).toBe('unknown');
  });
});
