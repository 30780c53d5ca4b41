/** A limit that falls while a queue persists, and recovers when it is gone. */
import { describe, expect, it } from 'vitest';
import { DelayLimit, INTERVAL_MILLIS, PATIENCE_MILLIS } from '../../src/shedding/delay-limit.ts';

const LEAST = 8;
const MOST = 1_000;
const TARGET_MILLIS = 20;
const STEP_MILLIS = 10;

class Bench {
  now = 5_000;
  readonly limit = new DelayLimit({ least: LEAST, most: MOST, targetMillis: TARGET_MILLIS });

  /** Every 10 ms a request has waited for `delayMillis`, and `open` are open. */
  pass(millis: number, delayMillis: (step: number) => number, open = 500): void {
    for (let step = 0; step * STEP_MILLIS < millis; step += 1) {
      this.now += STEP_MILLIS;
      this.limit.roomBeside(open);
      this.limit.observe(delayMillis(step), this.now);
    }
  }
}

describe('a limit by delay', () => {
  it('does not change while nothing waits, for any number of open requests', () => {
    const bench = new Bench();
    bench.pass(10_000, () => TARGET_MILLIS, 900);
    expect(bench.limit.limit).toBe(MOST);
    expect(bench.limit.isLowered).toBe(false);
  });

  it('is not lowered by a burst, even if some requests in it wait for long', () => {
    const bench = new Bench();
    for (let i = 0; i < 20; i += 1) {
      bench.pass(PATIENCE_MILLIS - 2 * INTERVAL_MILLIS, () => 300);
      bench.pass(2 * INTERVAL_MILLIS, () => 1);
    }
    expect(bench.limit.limit).toBe(MOST);
  });

  it('is not lowered while a request is served at once in each interval', () => {
    const bench = new Bench();
    bench.pass(5_000, (step) => (step % 5 === 0 ? 1 : 500));
    expect(bench.limit.limit).toBe(MOST);
  });

  it('is not lowered by one long pause', () => {
    const bench = new Bench();
    bench.pass(1_000, () => 1);
    bench.now += 3_000;
    bench.limit.observe(3_000, bench.now);
    bench.pass(1_000, () => 1);
    expect(bench.limit.limit).toBe(MOST);
  });

  it('falls from the number of open requests while even the quickest waits, but never below the minimum', () => {
    const bench = new Bench();
    bench.pass(PATIENCE_MILLIS + 2 * INTERVAL_MILLIS, () => 2 * TARGET_MILLIS);
    expect(bench.limit.limit).toBeLessThanOrEqual(250);
    bench.pass(5_000, () => 2 * TARGET_MILLIS);
    expect(bench.limit.limit).toBe(LEAST);
  });

  it('recovers step by step while it refuses, and within a second when no requests come', () => {
    const bench = new Bench();
    bench.pass(5_000, () => 10 * TARGET_MILLIS);
    expect(bench.limit.limit).toBe(LEAST);
    for (let i = 0; i < 100; i += 1) {
      bench.limit.refused();
      bench.pass(STEP_MILLIS, () => 1, LEAST);
    }
    expect(bench.limit.limit).toBeGreaterThan(LEAST);
    expect(bench.limit.limit).toBeLessThan(5 * LEAST);
    bench.pass(1_000, () => 1, 0);
    expect(bench.limit.limit).toBe(MOST);
  });

  it('finds the level at which a server of a given rate keeps its target delay', () => {
    const bench = new Bench();
    const perMilli = 4;
    let open = 0;
    let leastServed = Infinity;
    let mostWaited = 0;
    for (let i = 0; i < 1_000; i += 1) {
      // Ten times as many requests arrive as can be served.
      for (let come = 0; come < 10 * perMilli * STEP_MILLIS; come += 1) {
        if (bench.limit.roomBeside(open) > 0) open += 1;
        else bench.limit.refused();
      }
      bench.now += STEP_MILLIS;
      bench.limit.observe(open / perMilli, bench.now);
      const served = Math.min(open, perMilli * STEP_MILLIS);
      if (i > 500) {
        leastServed = Math.min(leastServed, served);
        mostWaited = Math.max(mostWaited, open / perMilli);
      }
      open -= served;
    }
    expect(leastServed).toBeGreaterThan(0.8 * perMilli * STEP_MILLIS);
    expect(mostWaited).toBeLessThan(2 * TARGET_MILLIS);
  });
});
