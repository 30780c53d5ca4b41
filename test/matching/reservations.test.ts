/**
 * Tests that reservations of requests that are not granted are given back under any load, until the outcome is
 * known.
 */
import { describe, expect, it } from 'vitest';
import { RELEASES_MAX } from '../../src/matching/reservations.ts';
import { Bench, decision, DENIED, FROM, GONE, LOST } from './bench.ts';

describe('a reservation of a denied request', () => {
  const refund = { ruleId: 'all/minute', decided: { term: 1, index: 1, timeMillis: 1 }, rulesVersion: 7 };
  const GIVEN_BACK = { kind: 'refund', refund: { ...refund, refunded: true, cost: 1 } } as const;
  const NOT_THERE = { kind: 'refund', refund: { ...refund, refunded: false, cost: 0 } } as const;
  const BUSY = { kind: 'unavailable', reason: 'overloaded', proposed: false } as const;

  it('is given back if it may have been granted, repeatedly until the refund is confirmed', () => {
    const bench = new Bench();
    bench.ask(FROM);
    bench.of('ip').answer(LOST);
    bench.of('*').answer(decision());
    expect(bench.reported).toEqual([{ answer: LOST, partition: 2 }]);
    expect(bench.refunds()).toHaveLength(2);
    bench.of('*').answer(GIVEN_BACK);
    const { reservations } = bench.requests;
    for (const [i, refusal] of [GONE, BUSY, LOST, GONE].entries()) {
      bench.of('ip').answer(refusal);
      bench.requests.tick();
      expect(bench.refunds()).toHaveLength(2 + i);
      bench.now += 100;
      bench.requests.tick();
      expect(bench.refunds()).toHaveLength(3 + i);
    }
    expect(reservations.pendingCount).toBe(1);
    bench.of('ip').answer(GIVEN_BACK);
    bench.now += 1_000;
    bench.requests.tick();
    expect(bench.refunds()).toHaveLength(6);
    expect([reservations.counts, reservations.pendingCount]).toEqual([{ released: 2, left: 0 }, 0]);
  });

  it('is given back again if the first refund found no grant: the reservation may still be on its way', () => {
    const bench = new Bench();
    bench.ask({ user: 'ada' });
    bench.of('*').answer(LOST);
    bench.of('*').answer(NOT_THERE);
    bench.now += 100;
    bench.requests.tick();
    expect(bench.refunds()).toHaveLength(2);
    bench.now += 10_000;
    bench.of('*').answer(NOT_THERE);
    expect(bench.requests.reservations.counts).toEqual({ released: 0, left: 1 });
    bench.ask({ user: 'ada' });
    bench.of('*').answer(decision());
    bench.of('user').answer(DENIED);
    bench.of('*').answer(NOT_THERE);
    expect(bench.requests.reservations.counts).toEqual({ released: 0, left: 2 });
  });

  it('counts as not given back if it expires before a partition can be asked', () => {
    const bench = new Bench();
    bench.ask({ user: 'ada' });
    bench.of('*').answer(decision());
    bench.of('user').answer(DENIED);
    bench.now += 120_000;
    bench.of('*').answer(GONE);
    bench.now += 1_000;
    bench.requests.tick();
    expect(bench.refunds()).toHaveLength(1);
    expect(bench.requests.reservations.counts).toEqual({ released: 0, left: 1 });
  });

  it('is given back few at a time, so that load refuses no refund', () => {
    const bench = new Bench();
    for (let i = 0; i < 1_000; i += 1) {
      bench.ask({ user: 'ada' });
      bench.of('*').answer(decision());
      bench.of('user').answer(DENIED);
    }
    expect(bench.refunds()).toHaveLength(64);
    for (let done = 0; done < bench.asked.length; done += 1)
      if (bench.asked[done]?.request.ask === 'refund') bench.asked[done]?.answer(GIVEN_BACK);
    expect(new Set(bench.refunds().map((one) => JSON.stringify(one))).size).toBe(1_000);
    expect(bench.requests.reservations.counts).toEqual({ released: 1_000, left: 0 });
  });

  it('is given back again after all partitions refused at once', () => {
    const bench = new Bench();
    for (let i = 0; i < 10_000; i += 1) {
      bench.ask({ user: 'ada' });
      bench.of('*').answer(decision());
      bench.of('user').answer(DENIED);
    }
    bench.refuses = BUSY;
    for (const { request, answer } of bench.asked.slice()) if (request.ask === 'refund') answer(BUSY);
    expect(bench.requests.reservations.pendingCount).toBe(10_000);
    bench.refuses = undefined;
    bench.now += 100;
    bench.requests.tick();
    for (let done = bench.asked.length - 64; done < bench.asked.length; done += 1)
      if (bench.asked[done]?.request.ask === 'refund') bench.asked[done]?.answer(GIVEN_BACK);
    expect(bench.requests.reservations.counts).toEqual({ released: 10_000, left: 0 });
  });

  it('prevents new reservations while too many are pending', () => {
    const bench = new Bench();
    for (let i = 0; i < RELEASES_MAX; i += 1) {
      bench.ask({ user: 'ada' });
      bench.of('*').answer(decision());
      bench.of('user').answer(DENIED);
    }
    const asked = bench.asked.length;
    bench.ask({ user: 'ada' });
    expect(bench.asked).toHaveLength(asked);
    expect(bench.reported.at(-1)).toEqual({ answer: BUSY, partition: 1 });
    bench.ask({ endpoint: '/x' });
    expect(bench.asked).toHaveLength(asked + 1);
    bench.asked.find(({ request }) => request.ask === 'refund')?.answer(GIVEN_BACK);
    bench.ask({ user: 'ada' });
    expect(bench.of('*').request).toMatchObject({ ruleId: 'all/minute' });
    expect(bench.asked).toHaveLength(asked + 3);
  });
});
