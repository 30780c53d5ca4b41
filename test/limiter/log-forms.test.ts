/** The two forms of a sliding log: neither the form nor a change of it may affect the log's answers. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { LogRuns, NARROW, WIDE } from '../../src/limiter/meters/log-runs.ts';
import type { LogView } from '../../src/limiter/meters/log-snapshot.ts';
import type { Demand, KeyRun } from '../../src/limiter/meters/meter.ts';
import { SlidingLogs } from '../../src/limiter/meters/sliding-logs.ts';
import { BlockPool, wordOf } from '../../src/limiter/state/block-pool.ts';
import { snapshotReader, snapshotWriter, takeChunk } from '../../src/limiter/state/snapshot-bytes.ts';
import { RUN_BYTES, StateSize } from '../../src/limiter/state/state-size.ts';
import { ROUNDS } from '../raft/seeded.ts';

const SLOTS = 3;
const WINDOW = 30;
const START = 1_700_000_000_000;
const RECORDED_COST_MAX = 0xffff_ffff;

function demand(t: number, cost = 1, windowMillis = WINDOW): Demand {
  const rule = { id: 'rule', limit: RECORDED_COST_MAX, windowMillis: WINDOW, clock: 'request' } as const;
  return { rule, t, cost, windowMillis, keptMillis: windowMillis };
}

/** The model of a log: a list of runs. */
class Model {
  runs: KeyRun[] = [];

  /** True if this grant can be recorded. */
  takes(t: number, cost: number, keptMillis: number): boolean {
    return this.#sum(this.#kept(t, keptMillis)) + cost <= RECORDED_COST_MAX;
  }

  record(t: number, cost: number, keptMillis: number): void {
    const kept = this.#kept(t, keptMillis);
    const last = kept.at(-1);
    if (last?.timeMillis === t) kept[kept.length - 1] = { timeMillis: t, cost: last.cost + cost };
    else kept.push({ timeMillis: t, cost });
    this.runs = kept;
  }

  live(t: number): number {
    return this.#sum(this.#kept(t, WINDOW));
  }

  wait(t: number, cost: number, limit: number): number {
    const times = [t, ...this.runs.map(({ timeMillis }) => timeMillis + WINDOW).filter((end) => end > t)];
    return (times.find((at) => this.live(at) + cost <= limit) ?? Infinity) - t;
  }

  get newest(): number {
    return this.runs.at(-1)?.timeMillis ?? 0;
  }

  get isPlain(): boolean {
    return this.runs.every(({ cost }) => cost === 1);
  }

  #kept(t: number, keptMillis: number): KeyRun[] {
    return this.runs.filter(({ timeMillis }) => timeMillis > t - keptMillis);
  }

  #sum(runs: readonly KeyRun[]): number {
    return runs.reduce((sum, { cost }) => sum + cost, 0);
  }
}

function written(view: LogView): Uint8Array {
  const out = snapshotWriter();
  let part = 0;
  const chunks: Uint8Array[] = [];
  do {
    part = view.write(out, START, part);
    chunks.push(takeChunk(out).slice());
  } while (part !== 0);
  return Buffer.concat(chunks);
}

/** A copy that a snapshot made of a log, and the contents it must keep. */
interface Copy {
  address: number;
  readonly form: number;
  readonly runs: readonly KeyRun[];
  readonly bytes: Uint8Array;
}

class Shadow {
  readonly size = new StateSize();
  readonly logs = new SlidingLogs(this.size);
  readonly models = Array.from({ length: SLOTS }, () => new Model());
  readonly copies: Copy[] = [];
  readonly #pool = new BlockPool((copy, address) => {
    this.copies[copy]!.address = address;
  });
  readonly seen: Map<string, number>;

  constructor(seen: Map<string, number>) {
    this.seen = seen;
    for (let slot = 0; slot < SLOTS; slot += 1) this.logs.add();
  }

  open(slot: number): LogRuns {
    return this.logs.open(slot, new LogRuns());
  }

  grant(slot: number, t: number, cost: number, keptMillis = WINDOW): void {
    const model = this.models[slot]!;
    if (!model.takes(t, cost, keptMillis)) return;
    const before = this.open(slot);
    this.logs.grant(slot, demand(t, cost, keptMillis));
    model.record(t, cost, keptMillis);
    const after = this.open(slot);
    const isWrapped = before.head + before.count > before.capacity;
    if (before.form !== after.form && before.count > 0) {
      this.#saw(after.form === WIDE ? 'wide' : 'narrow');
      if (isWrapped)
        this.#saw(after.form === WIDE ? 'wide from a wrapped ring' : 'narrow from a wrapped ring');
      if (after.form === WIDE && before.spentBeforeHead > 0) this.#saw('wide after the head moved');
    } else if (before.capacity > 0 && before.capacity !== after.capacity) {
      this.#saw(`${after.capacity > before.capacity ? 'grows' : 'shrinks'} ${after.form}`);
    }
    if (after.form === NARROW && after.spentBeforeHead + after.count > RECORDED_COST_MAX) {
      this.#saw('a narrow log over the wrap of its cost');
    }
  }

  /** A cost that brings the cumulative cost close to wrapping around. */
  costToWrap(slot: number): number {
    const log = this.open(slot);
    return Math.max(1, (RECORDED_COST_MAX - 2 - log.spentBeforeHead - log.recordedCost) >>> 0);
  }

  /** The key is removed and another one added; the last log moves into the free slot. */
  remove(slot: number): void {
    this.logs.remove(slot);
    this.models[slot] = this.models.at(-1)!;
    this.models[SLOTS - 1] = new Model();
    this.logs.add();
  }

  copy(slot: number): void {
    const { runs } = this.models[slot]!;
    if (runs.length === 0) return;
    const view = this.logs.view();
    view.show(slot);
    const address = this.#pool.allocate(view.units, this.copies.length);
    view.copyTo(this.#pool.slab(address), wordOf(address));
    const { form } = this.open(slot);
    this.copies.push({ address, form, runs, bytes: written(view) });
    this.#saw(`copy ${form}`);
  }

  /** All answers of the logs at time `t`, and the expected ones. */
  answers(t: number): { readonly given: readonly unknown[]; readonly expected: readonly unknown[] } {
    const given: unknown[] = [this.size.bytes];
    const expected: unknown[] = [this.models.reduce((sum, { runs }) => sum + runs.length, 0) * RUN_BYTES];
    for (const [slot, model] of this.models.entries()) {
      const { logs } = this;
      given.push(logs.inspect(slot), logs.newestMillis(slot), this.open(slot).form);
      expected.push(model.runs, model.newest, model.isPlain ? NARROW : WIDE);
      for (const later of [0, 1, WINDOW / 2]) {
        const at = Math.max(t, model.newest) + later;
        const live = model.live(at);
        given.push(logs.liveCost(slot, demand(at)));
        expected.push(live);
        for (const limit of [2, Math.max(1, live - 1)]) {
          const asked = demand(at, 2);
          given.push(logs.millisUntilAvailable(slot, { ...asked, rule: { ...asked.rule, limit } }, 2));
          expected.push(model.wait(at, 2, limit));
        }
      }
    }
    return { given, expected };
  }

  /** The present contents of the copies, and the expected ones. */
  reread(): { readonly given: readonly unknown[]; readonly expected: readonly unknown[] } {
    const given: unknown[] = [];
    const expected: unknown[] = [];
    for (const { address, form, runs, bytes } of this.copies) {
      const view = this.logs.view();
      view.showCopy(this.#pool.slab(address), wordOf(address));
      const restored = new SlidingLogs(new StateSize());
      restored.add();
      const input = snapshotReader();
      input.load(bytes);
      const part = restored.read(0, input, START, 0);
      const again = restored.view();
      again.show(0);
      given.push(
        written(view),
        part,
        restored.inspect(0),
        restored.open(0, new LogRuns()).form,
        written(again),
      );
      expected.push(bytes, 0, runs, form, bytes);
    }
    return { given, expected };
  }

  #saw(what: string): void {
    this.seen.set(what, (this.seen.get(what) ?? 0) + 1);
  }
}

const step = fc.record({
  slot: fc.nat(SLOTS - 1),
  gap: fc.constantFrom(0, 1, 1, 2, 2, 3, 5, 9, 28, 5_000_000_000),
  /** Grants of cost 1, a millisecond after each other. */
  times: fc.constantFrom(0, 1, 2, 3, 10, 40),
  cost: fc.constantFrom<number | 'to wrap'>(1, 1, 1, 1, 1, 2, 7, 3_000_000_000, 'to wrap'),
  keptMillis: fc.constantFrom(WINDOW, WINDOW, WINDOW, WINDOW * 2, 10, 3),
  event: fc.constantFrom('none', 'none', 'none', 'none', 'copy', 'copy', 'remove'),
});

describe('a log that changes its form', () => {
  it('gives the answers and snapshots of a list of runs', () => {
    const seen = new Map<string, number>();
    fc.assert(
      fc.property(fc.array(step, { minLength: 10, maxLength: 80 }), (steps) => {
        const shadow = new Shadow(seen);
        let t = START;
        for (const { slot, gap, times, cost, keptMillis, event } of steps) {
          t += gap;
          if (event === 'copy') shadow.copy(slot);
          else if (event === 'remove') shadow.remove(slot);
          shadow.grant(slot, t, cost === 'to wrap' ? shadow.costToWrap(slot) : cost, keptMillis);
          for (let i = 0; i < times; i += 1) {
            t += 1;
            shadow.grant(slot, t, 1);
          }
          const { given, expected } = shadow.answers(t);
          expect(given).toEqual(expected);
        }
        const { given, expected } = shadow.reread();
        expect(given).toEqual(expected);
      }),
      { numRuns: 100 * ROUNDS },
    );
    const wanted = ['wide', 'narrow', 'wide from a wrapped ring', 'narrow from a wrapped ring']
      .concat(['wide after the head moved', 'a narrow log over the wrap of its cost', 'copy 0', 'copy 1'])
      .concat(['grows 0', 'grows 1', 'shrinks 0', 'shrinks 1']);
    expect(wanted.filter((what) => (seen.get(what) ?? 0) < 5)).toEqual([]);
  });

  it('is wide from the first run that does not cost 1 until that has left', () => {
    const shadow = new Shadow(new Map());
    const forms = (asked: readonly (readonly [number, number])[]): number[] =>
      asked.map(([after, cost]) => {
        shadow.grant(0, START + after, cost);
        return shadow.open(0).form;
      });
    expect(forms([[0, 1], [1, 1], [2, 2], [3, 1]])).toEqual([NARROW, NARROW, WIDE, WIDE]); // prettier-ignore
    expect(forms([[WINDOW + 1, 1], [WINDOW + 2, 1], [WINDOW + 2, 1]])).toEqual([WIDE, NARROW, WIDE]); // prettier-ignore
    expect(forms([[WINDOW * 3, 5], [WINDOW * 5, 1]])).toEqual([WIDE, NARROW]); // prettier-ignore
  });

  it('copies a run at most once into each form, even if expensive grants come often', () => {
    const logs = new SlidingLogs(new StateSize());
    logs.add();
    const log = new LogRuns();
    let copied = 0;
    const grants = 20_000;
    for (let i = 0; i < grants; i += 1) {
      const { form, count } = logs.open(0, log);
      // An expensive grant as soon as the previous one has left the window.
      logs.grant(0, demand(START + i, form === NARROW ? 2 : 1));
      if (logs.open(0, log).form !== form) copied += count;
    }
    expect(copied).toBeGreaterThan(grants);
    expect(copied).toBeLessThanOrEqual(grants * 2);
  });
});
