/** Tests the peeks after a first denial: the answer names the limit with the longest wait. */
import { describe, expect, it } from 'vitest';
import type { Decision } from '../../src/api/answer.ts';
import { Bench, ruleSetOf, decision, DENIED, FROM, limitStatus } from './bench.ts';

const DENIAL = (DENIED as { readonly decision: Decision }).decision;

/** A request that `all` denied; the first partition, of the user, was not asked. */
function deniedByAll(bench: Bench, more: Parameters<Bench['ask']>[1] = {}): void {
  bench.ask(FROM, more);
  bench.of('ip').answer(decision());
  bench.of('*').answer(decision({ allowed: false, ruleId: 'all/minute', retryAfterMillis: 300 }));
}

function userWaits(bench: Bench, minuteMillis: number, hourMillis: number): void {
  bench.keyStatuses.set('user/minute', limitStatus('user/minute', { retryAfterMillis: minuteMillis }));
  bench.keyStatuses.set('user/hour', limitStatus('user/hour', { retryAfterMillis: hourMillis }));
}

describe('a request that other partitions denied', () => {
  it('reports the limit of the first partition if that has a longer wait, and all limits', () => {
    const bench = new Bench();
    userWaits(bench, 400, 9_000);
    deniedByAll(bench);
    const limits = ['user/minute', 'user/hour', 'net/minute', 'all/minute'].map((ruleId) => ({ ruleId }));
    const decided = { term: 3, index: 6, timeMillis: 9 };
    expect(bench.reported).toMatchObject([
      {
        answer: {
          decision: { allowed: false, ruleId: 'user/hour', retryAfterMillis: 9_000, decided, limits },
          key: 'user=ada',
        },
        partition: 1,
      },
    ]);
    expect(bench.refunds()).toHaveLength(1);
  });

  it('peeks with its own cost and timestamp, for at most a part of the remaining time', () => {
    const bench = new Bench();
    deniedByAll(bench, { cost: 2, timestampMillis: 4 });
    const peek = { ask: 'peek', userId: 'user=ada', cost: 2, timestampMillis: 4 };
    expect(bench.peekedAt).toEqual(
      ['user/minute', 'user/hour'].map((ruleId) => ({ request: { ...peek, ruleId }, deadlineMillis: 1_125 })),
    );
  });

  it.each([
    ['takes shorter', (bench: Bench) => userWaits(bench, 299, 1)],
    ['has room', (bench: Bench) => userWaits(bench, 0, 0)],
    ['cannot be peeked at', () => undefined],
    [
      'cannot be peeked at completely',
      (bench: Bench) =>
        bench.keyStatuses.set('user/hour', limitStatus('user/hour', { retryAfterMillis: 9_000 })),
    ],
    [
      'decides by other rules',
      (bench: Bench) => {
        bench.ruleSet = ruleSetOf(8);
        userWaits(bench, 9_000, 9_000);
      },
    ],
  ])('reports their denial if the first %s', (_, prepare) => {
    const bench = new Bench();
    prepare(bench);
    deniedByAll(bench);
    expect(bench.reported).toMatchObject([{ answer: { decision: { ruleId: 'all/minute' } }, partition: 3 }]);
  });

  it('reports a limit that the cost can never fit rather than one with a wait of a day', () => {
    const bench = new Bench();
    userWaits(bench, 0, 86_400_000);
    bench.keyStatuses.set('user/minute', limitStatus('user/minute', { limit: 0, retryAfterMillis: 60_000 }));
    deniedByAll(bench);
    expect(bench.reported).toMatchObject([{ answer: { decision: { ruleId: 'user/minute', limit: 0 } } }]);
  });

  it('reports a block rather than any limit', () => {
    const bench = new Bench();
    userWaits(bench, 1, 1);
    const { keyStatus } = limitStatus('user/minute');
    const blocked = { ...keyStatus, isBlocked: true, blockedUntilMillis: 509 } as const;
    bench.keyStatuses.set('user/minute', { kind: 'keyStatus', keyStatus: blocked });
    deniedByAll(bench);
    expect(bench.reported).toMatchObject([
      { answer: { decision: { isBlocked: true, retryAfterMillis: 500 } } },
    ]);
  });

  it('peeks at nothing if a block has denied it', () => {
    const bench = new Bench();
    bench.ask(FROM);
    bench.of('ip').answer(decision({ allowed: false, isBlocked: true }));
    bench.of('*').answer(decision());
    expect(bench.peekedAt).toEqual([]);
    expect(bench.reported).toMatchObject([{ answer: { decision: { isBlocked: true } } }]);
  });
});

describe('a request that the asked node denies itself', () => {
  it('is answered with the longest wait of all partitions, and reserves nothing', () => {
    const bench = new Bench();
    bench.denied.set('*', { ...DENIAL, ruleId: 'all/minute', retryAfterMillis: 5 });
    bench.keyStatuses.set('net/minute', limitStatus('net/minute', { retryAfterMillis: 86_400_000 }));
    userWaits(bench, 0, 400);
    bench.ask(FROM);
    expect(bench.reported).toMatchObject([{ answer: { decision: { ruleId: 'net/minute' } }, partition: 2 }]);
    expect(bench.reported[0]?.answer).toMatchObject({
      decision: { limits: [{}, {}, { ruleId: 'net/minute' }, { ruleId: 'all/minute' }] },
    });
    expect(bench.asked).toEqual([]);
  });

  it('asks no shadow rule, even if the peeks take long', () => {
    const bench = new Bench();
    bench.held = [];
    bench.denied.set('*', { ...DENIAL, ruleId: 'all/minute', retryAfterMillis: 5 });
    bench.ask(FROM);
    expect([bench.asked, bench.reported]).toEqual([[], []]);
    for (const answer of bench.held) answer();
    expect(bench.reported).toMatchObject([{ answer: { decision: { ruleId: 'all/minute' } }, partition: 3 }]);
    expect(bench.asked).toEqual([]);
  });

  it('gets no denial after its deadline', () => {
    const bench = new Bench();
    bench.held = [];
    bench.denied.set('*', { ...DENIAL, ruleId: 'all/minute', retryAfterMillis: 5 });
    bench.ask(FROM);
    bench.now += 500;
    for (const answer of bench.held) answer();
    expect(bench.reported).toMatchObject([
      { answer: { kind: 'unavailable', reason: 'deadline', proposed: false } },
    ]);
  });
});

describe('a request that is granted', () => {
  it('peeks at nothing', () => {
    const bench = new Bench();
    bench.ask(FROM);
    bench.of('ip').answer(decision());
    bench.of('*').answer(decision());
    bench.of('user').answer(decision());
    expect(bench.reported).toMatchObject([{ answer: { decision: { allowed: true } } }]);
    expect(bench.peekedAt).toEqual([]);
  });
});
