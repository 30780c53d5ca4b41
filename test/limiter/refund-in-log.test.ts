/**
 * A sliding log from which grants are refunded at the front, in the middle and at the end, compared with a plain list.
 */
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
  /** The caller's own time. */
  aheadMillis: fc.constantFrom(0, 0, 0, 1, 5, 35, 60),
  cost: fc.integer({ min: 1, max: 5 }),
  /** The grant to refund after this one, counted from the newest. */
  refund: fc.option(fc.nat(60), { freq: 2 }),
});

interface Granted {
  readonly key: number;
  readonly atMillis: number;
  cost: number;
}

/** The grants of each key, and its time: the time of its newest grant, or of the refund of a later one. */
class Model {
  readonly granted: Granted[] = [];
  readonly newest = Array.from({ length: KEYS }, () => 0);

  grant(key: number, atMillis: number, cost: number): void {
    this.granted.push({ key, atMillis, cost });
    this.newest[key] = atMillis;
  }

  takeBack(back: Granted, nowMillis: number): void {
    back.cost = 0;
    const last = Math.max(...this.of(back.key).map(({ atMillis }) => atMillis));
    if (last < back.atMillis && back.atMillis === this.newest[back.key])
      this.newest[back.key] = Math.max(last, Math.min(back.atMillis, nowMillis));
  }

  of(key: number): Granted[] {
    return this.granted.filter((each) => each.key === key && each.cost > 0);
  }
}

describe('a log with refunds', () => {
  it('reports the spent cost and its end, and goes back to the time of other grants, or of the group', () => {
    fc.assert(
      fc.property(fc.array(step, { maxLength: 120 }), (steps) => {
        const size = new StateSize();
        const logs = new SlidingLogs(size);
        for (let key = 0; key < KEYS; key += 1) logs.add();
        const model = new Model();
        let now = 1_000;
        for (const { key, waitMillis, aheadMillis, cost, refund } of steps) {
          now += waitMillis;
          const t = Math.max(now + aheadMillis, logs.newestMillis(key));
          logs.record(key, t, cost, WINDOW_MILLIS + t - now);
          model.grant(key, t, cost);
          const back = refund === null ? undefined : model.granted.at(-1 - refund);
          if (back !== undefined && back.cost > 0) {
            logs.refund(back.key, back.atMillis, back.cost, RULE, now);
            model.takeBack(back, now);
          }
          for (let each = 0; each < KEYS; each += 1)
            expect(reportBy(logs, each, now)).toEqual(expected(model, each, now));
          const runs = Array.from({ length: KEYS }, (_, each) => logs.inspect(each)).flat();
          expect(size.runs).toBe(runs.length);
        }
      }),
      { seed: 31, numRuns: 400 },
    );
  });

  it('gives back nothing for a grant that it does not hold', () => {
    const logs = new SlidingLogs(new StateSize());
    logs.add();
    logs.record(0, 100, 3, WINDOW_MILLIS);
    logs.record(0, 120, 2, WINDOW_MILLIS);
    for (const millis of [99, 101, 119, 121]) logs.refund(0, millis, 1, RULE, 130);
    logs.refund(0, 120, 9, RULE, 130);
    expect(logs.inspect(0)).toEqual([
      { timeMillis: 100, cost: 3 },
      { timeMillis: 120, cost: 0 },
    ]);
  });

  it('keeps no refunded grants, except the last', () => {
    const size = new StateSize();
    const logs = new SlidingLogs(size);
    logs.add();
    for (let t = 1_000; t < 21_000; t += 1) {
      logs.record(0, t, 1, 60_000);
      logs.refund(0, t, 1, RULE, t);
    }
    expect(size.runs).toBe(1);
    logs.record(0, 22_000, 1, 60_000);
    expect(logs.inspect(0)).toEqual([{ timeMillis: 22_000, cost: 1 }]);
  });
});

const RULE = { id: 'rule', limit: LIMIT, windowMillis: WINDOW_MILLIS, clock: 'cluster' } as const;

function reportBy(logs: SlidingLogs, key: number, nowMillis: number): unknown {
  const t = Math.max(nowMillis, logs.newestMillis(key));
  const demand = { rule: RULE, t, cost: 1, windowMillis: WINDOW_MILLIS, keptMillis: WINDOW_MILLIS };
  return [
    logs.newestMillis(key),
    logs.liveCost(key, demand),
    logs.millisUntilEmpty(key, demand),
    logs.millisUntilAvailable(key, demand, LIMIT - 2),
  ];
}

function expected(model: Model, key: number, nowMillis: number): unknown {
  const newestMillis = model.newest[key] ?? 0;
  const t = Math.max(nowMillis, newestMillis);
  const live = model.of(key).filter(({ atMillis }) => atMillis > t - WINDOW_MILLIS);
  const ends = live.map(({ atMillis }) => atMillis + WINDOW_MILLIS - t);
  const fits = [0, ...ends].find(
    (wait) => sum(live.filter(({ atMillis }) => atMillis > t + wait - WINDOW_MILLIS)) <= 2,
  );
  return [newestMillis, sum(live), Math.max(0, ...ends), fits];
}

function sum(grants: readonly Granted[]): number {
  return grants.reduce((total, { cost }) => total + cost, 0);
}
