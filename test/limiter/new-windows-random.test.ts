/**
 * Random rule documents and request histories: windows of a rule are added, removed, restored and moved, and every
 * other
 * window keeps its count. The model consists of plain lists of grants and uses no code of the product.
 */
import { describe, expect, it } from 'vitest';
import type { AllowRequest } from '../../src/api/request.ts';
import { limiterRulesOf } from '../../src/rules/limiter-rules.ts';
import { readRules } from '../../src/rules/read-rules.ts';
import { forEachSeed, seeded, someSeeds } from '../raft/seeded.ts';
import { Harness, restoreInto, snapshotOf, tableOf } from './harness.ts';

type Below = (bound: number) => number;

interface Window {
  readonly id: string;
  readonly limit: number;
  readonly windowMillis: number;
}

interface Grant {
  readonly t: number;
  readonly cost: number;
}

/** The grants of one key that one window knows. */
interface Known {
  /** Grants in the window, and those that another window certainly knew when this one was new. */
  grants: readonly Grant[];
  /** Further grants that other windows may have known, until they must be out. */
  extra: Grant;
  /** True if the window has granted the key something since it came into force. */
  isTouched: boolean;
}

const RULES = ['one', 'two'];
const KEYS = ['ada', 'bob', 'eve'];
/** No unit of time has any of these lengths. */
const LENGTHS = [40, 90, 200, 500, 1_200];
/** A named window always has the same length here. Grants that a longer one cannot know are tested elsewhere. */
const NAMED = new Map([
  ['peak', 90],
  ['office', 200],
]);
const STEPS = 120;
/** The window in group time: no drift, and whole milliseconds. */
const ROUNDING_MILLIS = 1;
const NOTHING: Grant = { t: 0, cost: 0 };

function drawWindows(below: Below, rule: string): readonly Window[] {
  const periods = LENGTHS.filter(() => below(2) === 0).map((windowMillis) => ({
    id: `${rule}/${windowMillis}ms`,
    limit: 2 + below(12),
    windowMillis,
  }));
  const named = [...NAMED]
    .filter(() => below(5) === 0)
    .map(([name, windowMillis]) => ({ id: `${rule}/${name}`, limit: 2 + below(12), windowMillis }));
  const drawn = [...periods, ...named];
  return drawn.length === 0 ? [{ id: `${rule}/200ms`, limit: 6, windowMillis: 200 }] : drawn;
}

/** The next document: the same limits, and most windows, in any order. */
function changed(below: Below, rule: string, before: readonly Window[]): readonly Window[] {
  const kept = before.filter(() => below(4) > 0);
  const added = drawWindows(below, rule).filter(
    ({ id }) => below(2) === 0 && !before.some((one) => one.id === id),
  );
  const all = [...kept, ...added];
  const windows = all.length === 0 ? before : all;
  return windows.toSorted(() => below(3) - 1);
}

function documentOf(rules: ReadonlyMap<string, readonly Window[]>, meter: string): string {
  const written = [...rules].map(([id, windows]) => ({
    id,
    key: 'user',
    group: id,
    clock: 'cluster',
    meter,
    windows: windows.map((window) => {
      const name = window.id.split('/')[1] ?? '';
      const { limit, windowMillis } = window;
      return { limit, windowMillis, ...(NAMED.has(name) && { name }) };
    }),
  }));
  return JSON.stringify({ rules: written });
}

class Cluster extends Harness {
  #version = 0;

  apply(document: string): void {
    const read = readRules(document);
    if (read.kind !== 'rules') throw new Error(JSON.stringify(read.mistakes));
    this.#version += 1;
    this.rules(tableOf(this.#version, [...limiterRulesOf(read.definitions)]));
  }

  /** The spent cost in each window. */
  spent(userId: string): Map<string, number> {
    const limits = this.machine.peek({ ask: 'peek', userId }, this.nowMillis)?.limits ?? [];
    return new Map(limits.map(({ ruleId, limit, remaining }) => [ruleId, limit - remaining]));
  }

  override allows(userId: string, _?: number, windows: readonly Window[] = [], cost = 1): boolean {
    const [first, ...further] = windows.map(({ id }) => ({ userId, ruleId: id, cost }));
    const request: AllowRequest = { ...first!, ...(further.length > 0 && { further, askedDigest: 1 }) };
    return this.one(request).allowed;
  }

  restart(): void {
    const hash = this.machine.hash();
    restoreInto(this.machine, snapshotOf(this.machine));
    if (this.machine.hash() !== hash) throw new Error('a snapshot brings another state');
  }
}

class Oracle {
  readonly #known = new Map<string, Known>();
  /** All windows that ever existed. */
  readonly #lengths = new Map<string, number>();

  cameIntoForce({ id, windowMillis }: Window): void {
    this.#lengths.set(id, windowMillis);
    for (const key of KEYS) this.#of(id, key).isTouched = false;
  }

  /** The least and the most cost that may be spent. */
  spent({ id }: Window, key: string, t: number): readonly [number, number] {
    return [sum(this.#sure(id, key, t)), sum(this.#possible(id, key, t))];
  }

  /** @param spent before the request, as reported */
  granted({ id }: Window, key: string, grant: Grant, spent: number): Known {
    const own = this.#of(id, key);
    if (own.isTouched) return { ...own, grants: [...own.grants, grant] };
    const sure = this.#sure(id, key, grant.t);
    const extra = { t: grant.t, cost: Math.max(0, spent - sum(sure)) };
    return { grants: [...sure, grant], extra, isTouched: true };
  }

  know({ id }: Window, key: string, known: Known): void {
    this.#known.set(`${id} ${key}`, known);
  }

  /** The window's own grants, and, if it is new, those that still count in another window that knows them. */
  #sure(id: string, key: string, t: number): readonly Grant[] {
    const { grants, isTouched } = this.#of(id, key);
    const others = isTouched ? [] : this.#others(id);
    const heard = others.flatMap((other) => this.#live(other, this.#of(other, key).grants, t));
    return this.#live(id, [...new Set([...grants, ...heard])], t);
  }

  /**
   * The same, with uncertain grants: those that left the window that knows them may or may not be
   * forgotten by it.
   */
  #possible(id: string, key: string, t: number): readonly Grant[] {
    const { isTouched } = this.#of(id, key);
    const known = [id, ...(isTouched ? [] : this.#others(id))].map((one) => this.#of(one, key));
    const grants = known.flatMap((one) => [...one.grants, one.extra]);
    return this.#live(id, [...new Set(grants)], t);
  }

  #of(id: string, key: string): Known {
    const known = this.#known.get(`${id} ${key}`) ?? { grants: [], extra: NOTHING, isTouched: false };
    this.#known.set(`${id} ${key}`, known);
    return known;
  }

  #others(id: string): readonly string[] {
    const rule = id.split('/')[0] ?? '';
    return [...this.#lengths.keys()].filter((other) => other !== id && other.startsWith(`${rule}/`));
  }

  #live(id: string, grants: readonly Grant[], t: number): readonly Grant[] {
    const window = (this.#lengths.get(id) ?? 0) + ROUNDING_MILLIS;
    return grants.filter((grant) => grant.t > t - window);
  }
}

function sum(grants: readonly Grant[]): number {
  return grants.reduce((cost, grant) => cost + grant.cost, 0);
}

function check(cluster: Cluster, oracle: Oracle, rules: ReadonlyMap<string, readonly Window[]>): void {
  for (const key of KEYS) {
    const spent = cluster.spent(key);
    for (const window of [...rules.values()].flat()) {
      const [least, most] = oracle.spent(window, key, cluster.nowMillis);
      const reported = spent.get(window.id) ?? -1;
      const isFull = reported === window.limit;
      const words = `${window.id} of ${key} spent ${reported} of ${window.limit}, must be ${least} to ${most}`;
      if (reported > most || (reported < least && !isFull)) throw new Error(words);
    }
  }
}

describe('windows that are added, removed and moved', () => {
  it('lose no grant, and count none twice', () => {
    let grants = 0;
    forEachSeed(someSeeds(60, 20), (seed) => {
      const below = seeded(seed);
      const cluster = new Cluster();
      const oracle = new Oracle();
      let rules = new Map(RULES.map((id) => [id, drawWindows(below, id)]));
      for (const window of [...rules.values()].flat()) oracle.cameIntoForce(window);
      cluster.apply(documentOf(rules, 'slidingLog'));
      for (let i = 0; i < STEPS; i += 1) {
        cluster.nowMillis += [0, 1, 3, 10, 30, 100, 400][below(7)] ?? 0;
        if (below(12) === 0) cluster.restart();
        if (below(8) === 0) {
          // Otherwise the order of the change and a grant in this millisecond would be undefined.
          cluster.nowMillis += 1;
          const before = new Set([...rules.values()].flat().map(({ id }) => id));
          rules = new Map([...rules].map(([id, windows]) => [id, changed(below, id, windows)]));
          for (const window of [...rules.values()].flat())
            if (!before.has(window.id)) oracle.cameIntoForce(window);
          cluster.apply(documentOf(rules, 'slidingLog'));
        }
        check(cluster, oracle, rules);
        const key = KEYS[below(KEYS.length)] ?? '';
        const windows = rules.get(RULES[below(RULES.length)] ?? '') ?? [];
        const cost = 1 + below(3);
        const spent = cluster.spent(key);
        const fits = windows.every(({ id, limit }) => (spent.get(id) ?? 0) + cost <= limit);
        if (cluster.allows(key, undefined, windows, cost) !== fits)
          throw new Error(`${key} must have a wait of ${fits}`);
        if (!fits) continue;
        grants += 1;
        const grant = { t: cluster.nowMillis, cost };
        const known = windows.map((one) => oracle.granted(one, key, grant, spent.get(one.id) ?? 0));
        for (const [at, window] of windows.entries()) oracle.know(window, key, known[at]!);
        check(cluster, oracle, rules);
      }
    });
    expect(grants).toBeGreaterThan(0);
  });

  it.each(['slidingLog', 'slidingCounter', 'fixedWindow', 'tokenBucket', 'leakyBucket'])(
    'change no count of a window that stays, for a %s',
    (meter) => {
      forEachSeed(someSeeds(20, 10), (seed) => {
        const below = seeded(seed);
        const cluster = new Cluster();
        let rules = new Map(RULES.map((id) => [id, drawWindows(below, id)]));
        cluster.apply(documentOf(rules, meter));
        for (let i = 0; i < STEPS; i += 1) {
          cluster.nowMillis += [0, 1, 3, 10, 30][below(5)] ?? 0;
          const windows = rules.get(RULES[below(RULES.length)] ?? '') ?? [];
          cluster.allows(KEYS[below(KEYS.length)] ?? '', undefined, windows, 1 + below(3));
          if (below(6) > 0) continue;
          const before = KEYS.map((key) => cluster.spent(key));
          const ids = new Set([...rules.values()].flat().map(({ id }) => id));
          rules = new Map([...rules].map(([id, all]) => [id, changed(below, id, all)]));
          cluster.apply(documentOf(rules, meter));
          for (const [at, key] of KEYS.entries()) {
            const kept = [...cluster.spent(key)].filter(([id]) => ids.has(id));
            expect(kept).toEqual(kept.map(([id]) => [id, before[at]?.get(id)]));
          }
        }
      });
    },
  );
});
