/** A sliding log from whose middle, front and end grants are taken back, against a plain list. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { SlidingLogs } from '../../src/limiter/meters/sliding-logs.ts';
import { StateSize } from '../../src/limiter/state/state-size.ts';

const WINDOW_MILLIS = 40;
const LIMIT = 10_000;
const KEYS = 3;

const step = fc.record({
  key: fc.nat(KEYS - 1),
  waitMillis: fc.constantFrom(0, 0, 1, 1, 2, 30),
  cost: fc.integer({ min: 1, max: 5 }),
  /** Which of the grants so far is taken back then, counted from the newest. */
  refund: fc.option(fc.nat(60), { freq: 2 }),
});

interface Granted {
  readonly key: number;
  readonly atMillis: number;
  cost: number;
}

describe('a log that grants are taken back from', () => {
  it('tells what is left of them, how long that counts, and keeps its newest stamp', () => {
    fc.assert(
      fc.property(fc.array(step, { maxLength: 120 }), (steps) => {
        const logs = new SlidingLogs(new StateSize());
        for (let key = 0; key < KEYS; key += 1) logs.add();
        const granted: Granted[] = [];
        let t = 1_000;
        for (const { key, waitMillis, cost, refund } of steps) {
          t += waitMillis;
          logs.record(key, t, cost, WINDOW_MILLIS);
          granted.push({ key, atMillis: t, cost });
          const back = refund === null ? undefined : granted.at(-1 - refund);
          if (back !== undefined) {
            logs.refund(back.key, back.atMillis, back.cost);
            back.cost = 0;
          }
          expect(toldBy(logs, t)).toEqual(expected(granted, t));
        }
      }),
      { seed: 31, numRuns: 300 },
    );
  });

  it('takes nothing back that it does not hold', () => {
    const logs = new SlidingLogs(new StateSize());
    logs.add();
    logs.record(0, 100, 3, WINDOW_MILLIS);
    logs.record(0, 120, 2, WINDOW_MILLIS);
    for (const millis of [99, 101, 119, 121]) logs.refund(0, millis, 1);
    logs.refund(0, 120, 9);
    expect(logs.inspect(0)).toEqual([
      { timeMillis: 100, cost: 3 },
      { timeMillis: 120, cost: 0 },
    ]);
  });
});

function demandAt(t: number): Parameters<SlidingLogs['liveCost']>[1] {
  const rule = { id: 'rule', limit: LIMIT, windowMillis: WINDOW_MILLIS, clock: 'cluster' } as const;
  return { rule, t, cost: 1, windowMillis: WINDOW_MILLIS, keptMillis: WINDOW_MILLIS };
}

function toldBy(logs: SlidingLogs, nowMillis: number): unknown {
  return Array.from({ length: KEYS }, (_, key) => {
    const t = Math.max(nowMillis, logs.newestMillis(key));
    const demand = demandAt(t);
    return [
      logs.newestMillis(key),
      logs.liveCost(key, demand),
      logs.millisUntilEmpty(key, demand),
      logs.millisUntilAvailable(key, demand, LIMIT - 2),
    ];
  });
}

function expected(granted: readonly Granted[], t: number): unknown {
  return Array.from({ length: KEYS }, (_, key) => {
    const all = granted.filter((each) => each.key === key);
    const live = all.filter(({ atMillis, cost }) => atMillis > t - WINDOW_MILLIS && cost > 0);
    const ends = live.map(({ atMillis }) => atMillis + WINDOW_MILLIS - t);
    const fits = [0, ...ends].find(
      (wait) => sum(live.filter(({ atMillis }) => atMillis > t + wait - WINDOW_MILLIS)) <= 2,
    );
    return [all.at(-1)?.atMillis ?? 0, sum(live), Math.max(0, ...ends), fits];
  });
}

function sum(grants: readonly Granted[]): number {
  return grants.reduce((total, { cost }) => total + cost, 0);
}
