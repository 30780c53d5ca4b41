/** Who names no rule is decided by the default one, where that is what the partition decides by. */
import { beforeEach, describe, expect, it } from 'vitest';
import type { AllowAnswer } from '../../src/api/answer.ts';
import type { AllowRequest } from '../../src/api/request.ts';
import { DefaultRequests } from '../../src/matching/default-requests.ts';
import { decision } from './bench.ts';

const CHANGED = { kind: 'unavailable', reason: 'rules_changed', proposed: false } as const;
const DEADLINE_MILLIS = 500;

interface Asked {
  readonly request: AllowRequest;
  readonly deadlineMillis: number;
  readonly answer: (answer: AllowAnswer) => void;
}

let rules: number | 'starting' | undefined;
let now: number;
let asked: Asked[];
let told: AllowAnswer[];
let requests: DefaultRequests;

function ask(userId: string): void {
  requests.ask({ userId }, (answer) => told.push(answer));
}

beforeEach(() => {
  [rules, now, asked, told] = [7, 1_000, [], []];
  requests = new DefaultRequests({
    rules: () => rules,
    ask: (request, done, deadlineMillis) => {
      if (request.ask !== undefined) expect.fail('it asks for a grant');
      const answer = (one: AllowAnswer): void =>
        (done as (answer: AllowAnswer, partition: number) => void)(one, 3);
      asked.push({ request, deadlineMillis, answer });
    },
    monotonicMillis: () => now,
    doorMillis: () => now,
    deadlineMillis: DEADLINE_MILLIS,
    waitingMax: 1,
  });
});

describe('a request that names no rule', () => {
  it('is asked by the rules that this node knows, and is told their answer', () => {
    ask('ada');
    expect(asked.map(({ request, deadlineMillis }) => [request, deadlineMillis])).toEqual([
      [{ userId: 'ada', matchedBy: 7 }, 1_500],
    ]);
    asked[0]?.answer(decision({ allowed: false }));
    expect(told).toEqual([decision({ allowed: false })]);
  });

  it('is nowhere before this node knows any rules, and where a document is in force', () => {
    for (rules of ['starting', undefined] as const) ask('ada');
    expect(asked).toEqual([]);
    expect(told).toEqual([{ ...CHANGED, reason: 'starting' }, CHANGED]);
  });

  it('is asked again while its partition decides by others, until this node has heard of them', () => {
    ask('ada');
    asked[0]?.answer(CHANGED);
    expect([asked.length, told]).toEqual([1, []]);
    rules = 8;
    requests.tick();
    expect([asked[1]?.request, asked[1]?.deadlineMillis]).toEqual([{ userId: 'ada', matchedBy: 8 }, 1_500]);
    asked[1]?.answer(decision());
    expect(told).toEqual([decision()]);
  });

  it('is refused where those are of a document', () => {
    ask('ada');
    asked[0]?.answer(CHANGED);
    rules = undefined;
    requests.tick();
    expect([asked.length, told]).toEqual([1, [CHANGED]]);
  });

  it('is refused at its deadline, and where too many wait', () => {
    for (const user of ['ada', 'bob']) {
      ask(user);
      asked.at(-1)?.answer(CHANGED);
    }
    expect(told).toEqual([{ ...CHANGED, reason: 'overloaded' }]);
    requests.tick();
    now = 1_500;
    asked.at(-1)?.answer(CHANGED);
    expect(told[1]).toEqual(CHANGED);
  });
});
