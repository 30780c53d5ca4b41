/** The meter of sliding logs, compared with plain lists of grants, and its memory. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { LOG_WINDOW_MILLIS_MAX, LogRuns, NARROW, WIDE } from '../../src/limiter/meters/log-runs.ts';
import type { Demand } from '../../src/limiter/meters/meter.ts';
import { SlidingLogs } from '../../src/limiter/meters/sliding-logs.ts';
import type { Rule } from '../../src/api/rule.ts';
import { StateSize } from '../../src/limiter/state/state-size.ts';
import { NaiveLog } from './naive.ts';
import { ROUNDS } from '../raft/seeded.ts';

/** A log beside others that must not influence it. */
class SlidingLog {
  readonly #size = new StateSize();
  readonly #logs = new SlidingLogs(this.#size);
  readonly #slot = 1;

  constructor() {
    for (let slot = 0; slot < 3; slot += 1) {
      this.#logs.add();
      if (slot !== this.#slot) this.#logs.grant(slot, demand(5, 100, 7));
    }
  }

  get newestMillis(): number {
    return this.#logs.newestMillis(this.#slot);
  }

  get runs(): LogRuns {
    return this.#logs.open(this.#slot, new LogRuns());
  }

  get runCount(): number {
    // One grant for each neighbour.
    return this.#size.runs - 2;
  }

  liveCost(t: number, windowMillis: number): number {
    return this.#logs.liveCost(this.#slot, demand(t, windowMillis));
  }

  grant(t: number, cost: number, windowMillis: number): void {
    this.#logs.grant(this.#slot, demand(t, windowMillis, cost));
  }

  bytesToGrant(t: number, windowMillis: number): number {
    return this.#logs.bytesToGrant(this.#slot, demand(t, windowMillis));
  }

  millisUntilAvailable(t: number, cost: number, limit: number, windowMillis: number): number {
    return this.#logs.millisUntilAvailable(this.#slot, demand(t, windowMillis, cost, limit), cost);
  }

  millisUntilEmpty(t: number, windowMillis: number): number {
    return this.#logs.millisUntilEmpty(this.#slot, demand(t, windowMillis));
  }
}

function demand(t: number, windowMillis: number, cost = 1, limit = 1): Demand {
  const rule: Rule = { id: 'rule', limit, windowMillis, clock: 'request' };
  return { rule, t, cost, windowMillis, keptMillis: windowMillis };
}

/** Grants a cost if it fits, as every caller of the log does. */
function ask(log: SlidingLog, t: number, cost: number, limit: number, windowMillis: number): boolean {
  const at = Math.max(t, log.newestMillis);
  if (log.liveCost(at, windowMillis) + cost > limit) return false;
  log.grant(at, cost, windowMillis);
  return true;
}

describe('a sliding log', () => {
  it('counts a grant while it is younger than the window and not when it is exactly as old', () => {
    const log = new SlidingLog();
    log.grant(1_000, 1, 100);
    expect(log.liveCost(1_099, 100)).toBe(1);
    expect(log.liveCost(1_100, 100)).toBe(0);
  });

  it('keeps one run for grants of the same millisecond', () => {
    const log = new SlidingLog();
    for (let i = 0; i < 1_000; i += 1) log.grant(7, 1, 100);
    expect(log.runCount).toBe(1);
    expect(log.liveCost(7, 100)).toBe(1_000);
  });

  it('has room for at most a quarter more runs than the limit, in whole blocks', () => {
    for (const limit of [1, 2, 3, 5, 9, 17, 33, 100, 257]) {
      for (const cost of [1, 2]) {
        const log = new SlidingLog();
        for (let t = 0; t < 1_000; t += 1) ask(log, t, cost, limit * cost, 300);
        const isWide = cost > 1;
        expect(log.runs.form).toBe(isWide ? WIDE : NARROW);
        // A block of one unit has room for two.
        expect(log.runs.capacity).toBeLessThanOrEqual(limit * 1.25 + (isWide ? 0 : 1));
        expect(log.liveCost(999, 300)).toBe(limit * cost);
      }
    }
  });

  it('frees memory after a burst', () => {
    const log = new SlidingLog();
    for (let t = 0; t < 10_000; t += 1) log.grant(t, 1, 10_000);
    expect(log.runs.capacity).toBeGreaterThanOrEqual(10_000);
    for (let i = 1; i <= 20; i += 1) log.grant(10_000 + i * 20_000, 1, 10_000);
    expect(log.runs.capacity).toBeLessThanOrEqual(16);
  });

  it('gets a smaller block without losing live runs when more than half of it is unused', () => {
    for (let most = 1; most <= 100; most += 1) {
      for (let live = 1; live <= most; live += 1) {
        const log = new SlidingLog();
        for (let t = 1; t <= most; t += 1) log.grant(t, 1, 1_000);
        log.grant(most + 1, 1, live);
        const times = Array.from({ length: log.runCount }, (_, run) => log.runs.millis(run));
        expect(times).toEqual(Array.from({ length: live }, (_, run) => most + 2 - live + run));
        expect(log.runs.capacity).toBeLessThanOrEqual(Math.max(3, live * 2));
      }
    }
  });

  it('refuses a grant older than its newest', () => {
    const log = new SlidingLog();
    log.grant(10, 1, 100);
    expect(() => log.grant(9, 1, 100)).toThrow(/older than the newest/);
  });

  it('moves its base when times run out of 32 bits, without losing a live grant', () => {
    const log = new SlidingLog();
    const window = 2_678_400_000;
    const model = new NaiveLog();
    for (let i = 0; i < 40; i += 1) {
      const t = 1_700_000_000_000 + i * 700_000_000;
      expect(ask(log, t, 1, 3, window)).toBe(model.ask(t, 1, 3, window));
      expect(Array.from({ length: log.runCount }, (_, run) => log.runs.millis(run))).toEqual(
        model.grants.map((grant) => grant.t),
      );
      expect(log.liveCost(t, window)).toBe(model.live(t, window));
    }
  });

  it('survives a gap of more than 32 bits of milliseconds and the wrap of the cumulative cost', () => {
    const log = new SlidingLog();
    for (let i = 0; i < 10_000; i += 1) log.grant(i * 5_000_000_000, 1_000_000, 1_000);
    expect(log.liveCost(9_999 * 5_000_000_000, 1_000)).toBe(1_000_000);
    expect(log.runs.cost(0)).toBe(1_000_000);
    expect(log.millisUntilAvailable(9_999 * 5_000_000_000, 1, 1_000_000, 1_000)).toBe(1_000);
  });

  it('counts everything recorded when the window grows, and denies while the limit is below that', () => {
    const log = new SlidingLog();
    for (let t = 0; t < 10; t += 1) log.grant(t * 10, 1, 1_000);
    expect(log.liveCost(1_050, 1_000)).toBe(4);
    expect(log.liveCost(1_050, 5_000)).toBe(10);
    expect(log.millisUntilAvailable(1_050, 1, 2, 1_000)).toBe(30);
    expect(log.millisUntilAvailable(1_050, 3, 2, 1_000)).toBe(Infinity);
  });

  it('is not changed by a read at any time in the future', () => {
    const log = new SlidingLog();
    for (let t = 0; t < 5; t += 1) log.grant(t, 1, 100);
    expect(log.liveCost(1e15, 100)).toBe(0);
    expect(log.millisUntilAvailable(1e15, 1, 5, 100)).toBe(0);
    expect(log.millisUntilEmpty(1e15, 100)).toBe(0);
    expect(log.liveCost(5, 100)).toBe(5);
    expect(log.runCount).toBe(5);
  });

  it('agrees with a naive list of grants on every answer', () => {
    const step = fc.record({
      gap: fc.oneof(
        fc.constant(0),
        fc.integer({ min: 0, max: 40 }),
        fc.integer({ min: -30, max: 300 }),
        fc.constant(5_000_000_000),
        fc.constant(2_000_000_000),
      ),
      cost: fc.integer({ min: 1, max: 12 }),
      windowScale: fc.constantFrom(1, 1, 1, 2, 0.5),
    });
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 10 }),
        fc.constantFrom(1, 5, 50, 100, 2_000_000_000),
        fc.array(step, { maxLength: 120 }),
        (limit, window, steps) => {
          const log = new SlidingLog();
          const model = new NaiveLog();
          let asked = 1_000_000;
          for (const { gap, cost, windowScale } of steps) {
            asked += gap;
            const windowNow = Math.min(LOG_WINDOW_MILLIS_MAX, Math.ceil(window * windowScale));
            const t = Math.max(asked, log.newestMillis);
            expect(log.newestMillis).toBe(model.newest);
            expect(log.liveCost(t, windowNow)).toBe(model.live(t, windowNow));
            const wait = log.millisUntilAvailable(t, cost, limit, windowNow);
            expect(wait).toBe(model.wait(t, cost, limit, windowNow));
            expect(log.millisUntilEmpty(t, windowNow)).toBe(model.empty(t, windowNow));
            const fitsThen = log.liveCost(t + wait, windowNow) + cost <= limit;
            const fitsBefore = log.liveCost(t + wait - 1, windowNow) + cost <= limit;
            expect(fitsThen).toBe(cost <= limit);
            expect(fitsBefore && wait > 0).toBe(false);
            const { runCount } = log;
            const growth = log.bytesToGrant(t, windowNow);
            const granted = ask(log, asked, cost, limit, windowNow);
            expect(granted).toBe(model.ask(asked, cost, limit, windowNow));
            expect(log.runCount).toBe(log.runs.count);
            expect(log.runCount > runCount).toBe(granted && growth > 0);
          }
        },
      ),
      { numRuns: 200 * ROUNDS },
    );
  });
});
