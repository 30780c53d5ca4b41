/**
 * The rules that every implementation of `Meter` must keep. A new meter is a line in `METERS`; `naive-meters.ts`
 * defines its count.
 */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { Demand, Meter, MeterView } from '../../src/limiter/meters/meter.ts';
import { meterOf } from '../../src/limiter/meters/meter-of.ts';
import { capacityOf, type Rule } from '../../src/api/rule.ts';
import { BlockPool, wordOf } from '../../src/limiter/state/block-pool.ts';
import { snapshotReader, snapshotWriter, takeChunk } from '../../src/limiter/state/snapshot-bytes.ts';
import { NONE } from '../../src/limiter/state/rows.ts';
import { StateSize } from '../../src/limiter/state/state-size.ts';

const WINDOW = 100;
const START = 1_700_000_000_000;
const LIMIT = 3;

const RULE: Rule = { id: 'rule', limit: LIMIT, windowMillis: WINDOW, clock: 'request' };

const METERS: readonly (readonly [string, Rule])[] = [
  ['a sliding log', RULE],
  ['a sliding log by granules', { ...RULE, granularityMillis: 30 }],
  ['a sliding counter', { ...RULE, meter: 'slidingCounter' }],
  ['a fixed window', { ...RULE, meter: 'fixedWindow' }],
  ['a fixed window of a month', { ...RULE, meter: 'fixedWindow', calendar: 'month' }],
  ['a token bucket', { ...RULE, meter: 'tokenBucket', burst: 4 }],
  ['a token bucket with an odd rate', { ...RULE, meter: 'tokenBucket', windowMillis: 97 }],
  ['a leaky bucket', { ...RULE, meter: 'leakyBucket', burst: 1, queue: 3 }],
];

const asks = fc.array(
  fc.record({
    gap: fc.oneof(fc.constant(0), fc.integer({ min: 0, max: 30 }), fc.integer({ min: 0, max: 500 })),
    cost: fc.integer({ min: 1, max: LIMIT + 1 }),
  }),
  { minLength: 1, maxLength: 60 },
);

type Asks = readonly { readonly gap: number; readonly cost: number }[];

function demandOf(rule: Rule, t: number, cost: number): Demand {
  return { rule, t, cost, windowMillis: rule.windowMillis, keptMillis: rule.windowMillis };
}

/** A meter with one key, in slot 0. */
class Shadow {
  readonly size = new StateSize();
  readonly meter: Meter;
  readonly #rule: Rule;

  constructor(rule: Rule) {
    this.#rule = rule;
    this.meter = meterOf(rule, this.size);
    this.meter.add();
  }

  /** Passes each demand to `each`, then grants it if it fits. Returns the time of the last one. */
  run(steps: Asks, each: (demand: Demand, fits: boolean) => void = () => undefined): number {
    const { meter } = this;
    let asked = START;
    for (const { gap, cost } of steps) {
      asked += gap;
      const wanted = demandOf(this.#rule, Math.max(asked, meter.newestMillis(0)), cost);
      const fits = meter.liveCost(0, wanted) + cost <= capacityOf(this.#rule);
      each(wanted, fits);
      if (fits) meter.grant(0, wanted);
    }
    return asked;
  }

  get isGranted(): boolean {
    return this.meter.newestMillis(0) > 0;
  }

  /** All answers of a meter at time `t`. */
  answers(slot: number, t: number): unknown[] {
    const { meter } = this;
    const at = Math.max(t, meter.newestMillis(slot));
    return [0, 1, WINDOW / 2, WINDOW, WINDOW * 3].map((later) => {
      const wanted = demandOf(this.#rule, at + later, 1);
      return [
        meter.newestMillis(slot),
        meter.liveCost(slot, wanted),
        meter.millisUntilAvailable(slot, wanted, 1),
        meter.millisUntilEmpty(slot, wanted),
        meter.idleAtMillis(slot, this.#rule.windowMillis, this.#rule),
        meter.bytesToGrant(slot, wanted),
        meter.inspect(slot),
      ];
    });
  }

  /** The bytes that a view writes, part by part; before each part it points to another key. */
  written(show: (view: MeterView) => void): Uint8Array[] {
    const out = snapshotWriter();
    const chunks: Uint8Array[] = [];
    const view = this.meter.view();
    let part = 0;
    do {
      show(view);
      part = view.write(out, START, part);
      chunks.push(takeChunk(out).slice());
    } while (part !== 0);
    return chunks;
  }
}

describe.each(METERS)('%s', (_, rule) => {
  const capacity = capacityOf(rule);
  const demand = (t: number, cost: number): Demand => demandOf(rule, t, cost);

  it('is not changed by a read at any time in the future', () => {
    fc.assert(
      fc.property(asks, (steps) => {
        const [one, other] = [new Shadow(rule), new Shadow(rule)];
        one.run(steps);
        other.run(steps, ({ t }) => other.answers(0, t + 1_000_000));
        expect(other.answers(0, START)).toEqual(one.answers(0, START));
      }),
    );
  });

  it('reports waits that are long enough, as integers of at least 0', () => {
    fc.assert(
      fc.property(asks, (steps) => {
        const shadow = new Shadow(rule);
        const { meter } = shadow;
        shadow.run(steps, (wanted, fits) => {
          const { t, cost } = wanted;
          const wait = meter.millisUntilAvailable(0, wanted, cost);
          const empty = meter.millisUntilEmpty(0, wanted);
          for (const value of [wait, empty, meter.liveCost(0, wanted)]) {
            expect(value >= 0 && (value === Infinity || Number.isSafeInteger(value))).toBe(true);
          }
          expect(wait === 0).toBe(fits);
          expect(wait === Infinity).toBe(cost > capacity);
          const then = wait === Infinity ? 0 : meter.liveCost(0, demand(t + wait, cost)) + cost;
          expect(then).toBeLessThanOrEqual(capacity);
          expect(meter.liveCost(0, demand(t + empty, 1))).toBe(0);
        });
      }),
    );
  });

  it('counts nothing once it is idle', () => {
    fc.assert(
      fc.property(asks, (steps) => {
        const shadow = new Shadow(rule);
        shadow.run(steps);
        const { meter } = shadow;
        const idle = Math.max(meter.idleAtMillis(0, rule.windowMillis, rule), meter.newestMillis(0));
        expect(meter.liveCost(0, demand(idle, 1))).toBe(0);
      }),
    );
  });

  it('adds no more bytes with a grant than predicted, and returns all of them when a key is removed', () => {
    fc.assert(
      fc.property(asks, (steps) => {
        const { size, meter } = new Shadow(rule);
        let t = START;
        for (const [i, { gap }] of steps.entries()) {
          t += gap;
          const said = meter.bytesToGrant(i === 0 ? NONE : 0, demand(t, 1));
          const before = size.bytes;
          meter.grant(0, demand(t, 1));
          expect(size.bytes - before).toBeLessThanOrEqual(said);
        }
        meter.remove(0);
        expect([meter.rows.size, size.bytes]).toEqual([0, 0]);
      }),
    );
  });

  it('can be restored from a snapshot, which is the same from its slot and from a copy', () => {
    fc.assert(
      fc.property(asks, (steps) => {
        const shadow = new Shadow(rule);
        const end = shadow.run(steps);
        fc.pre(shadow.isGranted);
        const chunks = shadow.written((view) => view.show(0));
        const copies = new BlockPool(() => undefined);
        const source = shadow.meter.view();
        source.show(0);
        const address = copies.allocate(source.units, 0);
        source.copyTo(copies.slab(address), wordOf(address));
        expect(shadow.written((view) => view.showCopy(copies.slab(address), wordOf(address)))).toEqual(
          chunks,
        );

        const restored = new Shadow(rule);
        const input = snapshotReader();
        let part = 0;
        for (const chunk of chunks) {
          input.load(chunk);
          part = restored.meter.read(0, input, START, part);
        }
        expect([part, input.isAtEnd]).toEqual([0, true]);
        expect(restored.answers(0, end)).toEqual(shadow.answers(0, end));
      }),
    );
  });

  it('moves the last key into the slot of a removed one, with all its grants', () => {
    fc.assert(
      fc.property(asks, (steps) => {
        const shadow = new Shadow(rule);
        const end = shadow.run(steps);
        const { meter } = shadow;
        meter.add();
        meter.grant(1, demand(end, 1));
        const kept = shadow.answers(1, end);
        meter.remove(0);
        expect(meter.rows.size).toBe(1);
        expect(shadow.answers(0, end)).toEqual(kept);
      }),
    );
  });
});
