/** Tests decisions by fail mode when partitions cannot decide, for requests in one and two partitions. */
import { describe, expect, it } from 'vitest';
import type { AllowAnswer } from '../../src/api/answer.ts';
import type { AskAnswer } from '../../src/api/question.ts';
import { UNAVAILABLE_REASONS } from '../../src/api/refusals.ts';
import { FAIL_MODES, type FailMode } from '../../src/rules/rule-definition.ts';

import { Bench, DENIED, degraded, GONE, GRANTED, LOST, undecided, WAIT } from './fail-modes-bench.ts';

describe('a request whose limits are in one partition', () => {
  const followed = [
    'no_leader',
    'deadline',
    'overloaded',
    'low_disk',
    'at_capacity',
    'starting',
    'unknown_outcome',
  ];

  it.each(UNAVAILABLE_REASONS)('is let through by an open rule, if fail modes apply: %s', (reason) => {
    const bench = new Bench({ a: 'open' });
    bench.ask();
    bench.answer('a', undecided(reason));
    // For some reasons the request is repeated: once more, after the deadline.
    const isAgain = bench.reported.length === 0;
    bench.now += 600;
    bench.requests.tick();
    if (isAgain) bench.answer('a', undecided(reason));
    expect(isAgain).toBe(reason === 'rules_changed');
    const isFollowed = followed.includes(reason);
    expect(bench.reported).toEqual([
      { answer: isFollowed ? degraded(true, 'a') : undecided(reason), partition: 0 },
    ]);
  });

  it.each([
    { kind: 'invalid', field: 'cost', message: 'cost is too much' },
    { kind: 'conflict', field: 'cost', message: 'another cost' },
    DENIED,
    GRANTED,
  ] as const)('gets a decision or an error of the partition as it is: %j', (answer) => {
    const bench = new Bench({ a: 'open' });
    bench.ask();
    bench.answer('a', answer);
    const reported = answer.kind === 'decision' ? { ...answer, key: 'a=ada' } : answer;
    expect(bench.reported).toEqual([{ answer: reported, partition: 0 }]);
    expect(bench.changes).toEqual([]);
  });

  it('is let through by a local rule until the fraction of this node is used up', () => {
    const bench = new Bench({ a: 'local' });
    bench.ask();
    bench.answer('a', GONE);
    expect(bench.taken).toEqual([['a']]);
    bench.waits.set('a', WAIT);
    bench.ask();
    bench.answer('a', LOST);
    expect(bench.reported.map(({ answer }) => answer)).toEqual([degraded(true, 'a'), degraded(false, 'a')]);
  });

  it('is refused while this node has no rules', () => {
    const bench = new Bench({ a: 'open' });
    bench.ruleSet = 'starting';
    bench.ask();
    expect(bench.reported).toEqual([{ answer: undecided('starting'), partition: 0 }]);
  });
});

type End = 'granted' | 'denied' | 'gone';
const ENDS: readonly End[] = ['granted', 'denied', 'gone'];
const ANSWERS: Readonly<Record<End, AllowAnswer>> = { granted: GRANTED, denied: DENIED, gone: GONE };
const CASES = FAIL_MODES.flatMap((first) =>
  FAIL_MODES.flatMap((second) =>
    ENDS.flatMap((firstEnds) =>
      ENDS.flatMap((secondEnds) =>
        [true, false].map((hasPart) => ({ first, second, firstEnds, secondEnds, hasPart })),
      ),
    ),
  ),
);

/**
 * The expected outcome, written from the documented guarantee: a denial denies, then `closed` refuses, then the local
 * fraction is asked.
 */
function expected({ first, second, firstEnds, secondEnds, hasPart }: (typeof CASES)[number]): string {
  if (secondEnds === 'denied') return 'denied';
  const gone = [...(firstEnds === 'gone' ? [first] : []), ...(secondEnds === 'gone' ? [second] : [])];
  if (secondEnds === 'gone' && second === 'closed') return 'unavailable';
  // The local fraction is asked before the first limit.
  if (secondEnds === 'gone' && second === 'local' && !hasPart) return 'held back';
  if (firstEnds === 'denied') return 'denied';
  if (gone.length === 0) return 'granted';
  if (gone.includes('closed')) return 'unavailable';
  return gone.includes('local') && !hasPart ? 'held back' : 'let through';
}

function nameOf(answer: AskAnswer): string {
  if (answer.kind === 'degraded') return answer.allowed ? 'let through' : 'held back';
  if (answer.kind === 'decision') return answer.decision.allowed ? 'granted' : 'denied';
  return answer.kind;
}

describe('a request whose limits are in two partitions', () => {
  it.each(CASES)(
    '$first $firstEnds, $second $secondEnds, with a local fraction left: $hasPart',
    ({ ...one }) => {
      const bench = new Bench({ a: one.first, b: one.second });
      if (!one.hasPart) bench.waits.set('a', WAIT).set('b', WAIT);
      bench.ask();
      bench.answer('b', ANSWERS[one.secondEnds]);
      if (bench.reported.length === 0) bench.answer('a', ANSWERS[one.firstEnds]);
      expect(bench.reported.map(({ answer }) => nameOf(answer))).toEqual([expected(one)]);
      // A reservation is used, or given back.
      const isUsed = ['granted', 'let through'].includes(expected(one));
      expect(bench.refunded).toEqual(one.secondEnds === 'granted' && !isUsed ? ['b'] : []);
      const isTaken = (mode: FailMode, ends: End): boolean => isUsed && mode === 'local' && ends === 'gone';
      const taken = [
        ...(isTaken(one.second, one.secondEnds) ? [['b']] : []),
        ...(isTaken(one.first, one.firstEnds) ? [['a']] : []),
      ];
      expect(bench.taken).toEqual(taken);
      const isDegraded = ['held back', 'let through'].includes(expected(one));
      expect(bench.changes).toEqual(isDegraded ? [[true, 1]] : []);
    },
  );

  it.each([
    ['open', 1_250],
    ['local', 1_250],
    ['closed', 1_500],
  ] as const)('has time left to ask for the first limit if the others are %s', (mode, untilMillis) => {
    const bench = new Bench({ a: 'closed', b: mode });
    bench.ask();
    expect(bench.asked.map(({ deadlineMillis }) => deadlineMillis)).toEqual([untilMillis]);
    bench.now = 1_250;
    bench.answer('b', GRANTED);
    expect(bench.asked[1]?.deadlineMillis).toBe(1_500);
  });

  it.each([
    ['no partition knows of one', GONE, degraded(false, 'b')],
    [
      'there was no grant',
      { kind: 'invalid', field: 'requestId', message: 'nothing is remembered' } as const,
      degraded(false, 'b'),
    ],
    ['there was a grant', GRANTED, GRANTED],
  ])('that is held back gets the grant of an earlier attempt, if %s: %#', (_, remembered, reported) => {
    const bench = new Bench({ a: 'closed', b: 'local' });
    bench.waits.set('b', WAIT);
    bench.ask({ requestId: 'r1' });
    bench.answer('b', GONE);
    expect(bench.asked[1]?.request).toMatchObject({ requestId: 'r1', ifRemembered: true });
    bench.answer('a', remembered);
    expect(bench.reported.map(({ answer }) => answer)).toMatchObject([reported]);
  });

  it('names all rules that could not be decided, each once', () => {
    const bench = new Bench({ a: 'open', b: 'local', c: 'closed' });
    bench.ask();
    bench.answer('b', LOST);
    bench.answer('c', GRANTED);
    bench.answer('a', GONE);
    expect(bench.reported).toEqual([{ answer: degraded(true, 'a', 'b'), partition: 0 }]);
    expect(bench.refunded).toEqual([]);
  });

  it('is denied by a certain denial, even if undecided rules are open', () => {
    const bench = new Bench({ a: 'closed', b: 'open', c: 'closed' });
    bench.ask();
    bench.answer('b', LOST);
    bench.answer('c', DENIED);
    expect(bench.reported.map(({ answer }) => nameOf(answer))).toEqual(['denied']);
    // The reservation may have been granted.
    expect(bench.refunded).toEqual(['b']);
    expect(bench.wasAsked('a')).toBe(false);
  });

  it('is not refused after its first limit granted it: a retry would get that grant with nothing charged elsewhere', () => {
    const bench = new Bench({ a: 'closed', b: 'local', c: 'closed' });
    bench.waits.set('b', WAIT);
    bench.ask({ requestId: 'r1' });
    bench.answer('b', GONE);
    bench.answer('c', GRANTED);
    // The partition is asked only for an earlier grant, and there is none.
    bench.answer('a', { kind: 'invalid', field: 'requestId', message: 'none' });
    expect(bench.reported.map(({ answer }) => answer)).toEqual([degraded(false, 'b')]);
    expect(bench.refunded).toEqual(['c']);
  });

  it('keeps its reservations if its first limit may have granted it', () => {
    const bench = new Bench({ a: 'local', b: 'closed' });
    bench.waits.set('a', WAIT);
    bench.ask({ requestId: 'r1' });
    bench.answer('b', GRANTED);
    bench.answer('a', LOST);
    expect(bench.reported.map(({ answer }) => answer)).toEqual([degraded(false, 'a')]);
    expect(bench.refunded).toEqual([]);
  });

  it('gives its reservations back if an earlier attempt was granted, with reservations of its own', () => {
    const bench = new Bench({ a: 'closed', b: 'open', c: 'closed' });
    bench.ask({ requestId: 'r1' });
    bench.answer('b', GONE);
    bench.answer('c', GRANTED);
    bench.answer('a', { ...GRANTED, isRepeat: true } as AllowAnswer);
    expect(bench.reported.map(({ answer }) => answer)).toEqual([degraded(true, 'b')]);
    expect(bench.refunded).toEqual(['c']);
  });

  it('is asked again while rules change, even if other partitions cannot decide', () => {
    const bench = new Bench({ a: 'open', b: 'open', c: 'open' });
    bench.ask();
    bench.answer('b', GONE);
    bench.answer('c', undecided('rules_changed'));
    expect(bench.reported).toEqual([]);
    bench.requests.tick();
    bench.answer('b', GRANTED);
    bench.answer('c', GRANTED);
    bench.answer('a', GRANTED);
    expect(bench.reported.map(({ answer }) => nameOf(answer))).toEqual(['granted']);
  });
});
