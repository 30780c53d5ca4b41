/**
 * Random requests under limits in three partitions, with retries, refunds and settlements, compared with a plain
 * sum per key.
 *
 * Repeat a failing history with `SEED=n npx vitest run test/matching/given-back-random.test.ts`.
 */
import { describe, expect, it } from 'vitest';
import { Random } from '../sim/random.ts';
import { tableOf } from '../partition/fake-driver.ts';
import { ruleSetOf } from './bench.ts';
import { DrivenCluster } from './driven-cluster.ts';

const LIMITS = { user: 12, org: 20, team: 30 } as const;
type Dimension = keyof typeof LIMITS;
const DIMENSIONS = ['user', 'org', 'team'] as const satisfies readonly Dimension[];
const DOCUMENT = `
rules:
${DIMENSIONS.map((key) => `  - { id: ${key}, key: ${key}, windows: { limit: ${LIMITS[key]}, per: hour } }`).join('\n')}
`;
const TABLE = tableOf(
  7,
  ...DIMENSIONS.map((key) => ({ id: `${key}/hour`, limit: LIMITS[key], windowMillis: 3_600_000 })),
);

/** The request of one id. */
interface Use {
  readonly descriptors: Readonly<Record<string, string>>;
  readonly cost: number;
  readonly settledCost: number;
  isGranted: boolean;
  isRefunded: boolean;
  isSettled: boolean;
}

/** An answer, and the expected contents. */
interface Reported {
  readonly found: object;
  readonly expected: object;
}

class History {
  readonly #random: Random;
  readonly #cluster: DrivenCluster;
  readonly #uses: Use[] = [];
  readonly seen = { granted: 0, denied: 0, refunded: 0, settled: 0, debts: 0 };

  constructor(seed: number) {
    this.#random = new Random(seed);
    this.#cluster = new DrivenCluster({
      partitions: 3,
      partitionOf: (key) => DIMENSIONS.findIndex((dimension) => key.startsWith(dimension)),
      leads: [0, 1, 2].filter(() => this.#random.chance(0.5)),
      ruleSet: ruleSetOf(7, DOCUMENT),
      table: TABLE,
    });
  }

  #chargedTo(dimension: Dimension, value: string | undefined): number {
    let sum = 0;
    for (const { descriptors, cost, settledCost, isGranted, isRefunded, isSettled } of this.#uses) {
      if (value === undefined || descriptors[dimension] !== value) continue;
      sum += isGranted && !isRefunded ? cost : 0;
      sum += isSettled ? settledCost : 0;
    }
    return sum;
  }

  #leftOf({ descriptors }: Use): number[] {
    return DIMENSIONS.filter((dimension) => descriptors[dimension] !== undefined).map((dimension) =>
      Math.max(0, LIMITS[dimension] - this.#chargedTo(dimension, descriptors[dimension])),
    );
  }

  step(): readonly Reported[] {
    const random = this.#random;
    const known = this.#uses.length;
    const id = known > 0 && random.chance(0.6) ? random.below(known) : known;
    if (id === known) {
      const some = DIMENSIONS.filter(() => random.chance(0.8));
      this.#uses.push({
        descriptors: Object.fromEntries(
          (some.length === 0 ? DIMENSIONS : some).map((dimension) => [dimension, `${random.below(2)}`]),
        ),
        cost: 1 + random.below(5),
        settledCost: 1 + random.below(7),
        isGranted: false,
        isRefunded: false,
        isSettled: false,
      });
    }
    const use = this.#uses[id]!;
    const kind = id === known ? 0 : random.below(3);
    const answered =
      kind === 0
        ? this.#ask(use, `r${id}`)
        : kind === 1
          ? this.#refund(use, `r${id}`)
          : this.#settle(use, `r${id}`);
    return [answered, this.#left()];
  }

  #ask(use: Use, requestId: string): Reported {
    const { descriptors, cost } = use;
    const fits = this.#leftOf(use).every((left) => left >= cost);
    const found = this.#cluster.ask(descriptors, requestId, cost);
    if (use.isRefunded) return { found, expected: { kind: 'conflict' } };
    if (use.isGranted) return { found, expected: { isRepeat: true, decision: { allowed: true } } };
    use.isGranted = fits;
    this.seen[fits ? 'granted' : 'denied'] += 1;
    if (!fits) return { found, expected: { kind: 'decision', decision: { allowed: false } } };
    const remaining = Math.min(...this.#leftOf(use));
    return { found, expected: { kind: 'decision', decision: { allowed: true, remaining } } };
  }

  #refund(use: Use, requestId: string): Reported {
    const found = this.#cluster.refund(use.descriptors, requestId);
    this.seen.refunded += use.isGranted && !use.isRefunded ? 1 : 0;
    use.isRefunded = use.isGranted;
    return { found, expected: { kind: 'refund', refund: { refunded: use.isGranted }, kept: [] } };
  }

  #settle(use: Use, requestId: string): Reported {
    const found = this.#cluster.ask(use.descriptors, requestId, use.settledCost, true);
    // A repeated settlement without an estimate repeats the remaining cost of the first.
    const isRepeated = use.isSettled && !use.isGranted;
    this.seen.settled += use.isSettled ? 0 : 1;
    use.isSettled = true;
    use.isRefunded = use.isGranted;
    const remaining = Math.min(...this.#leftOf(use));
    const decision = isRepeated ? { allowed: true } : { allowed: true, remaining };
    return { found, expected: { kind: 'decision', decision } };
  }

  /** The remaining cost of every key. */
  #left(): Reported {
    const found: Record<string, number | undefined> = {};
    const expected: Record<string, number> = {};
    for (const dimension of DIMENSIONS)
      for (const value of ['0', '1']) {
        const key = `${dimension}=${value}`;
        const charged = this.#chargedTo(dimension, value);
        if (charged > LIMITS[dimension]) this.seen.debts += 1;
        found[key] = this.#cluster.left(key, `${dimension}/hour`);
        expected[key] = Math.max(0, LIMITS[dimension] - charged);
      }
    return { found, expected };
  }
}

describe('requests in several partitions, given back and settled at random', () => {
  const named = process.env['SEED'];
  const seeds = named === undefined ? Array.from({ length: 60 }, (_, i) => i + 1) : [Number(named)];
  const seen = { granted: 0, denied: 0, refunded: 0, settled: 0, debts: 0 };

  it.each(seeds)('charge each key the sum of all costs that were not given back, seed %i', (seed) => {
    const history = new History(seed);
    for (let i = 0; i < 60; i += 1)
      for (const { found, expected } of history.step()) expect(found).toMatchObject(expected);
    for (const kind of Object.keys(seen) as (keyof typeof seen)[]) seen[kind] += history.seen[kind];
  });

  it.skipIf(named !== undefined)('include every kind of request', () => {
    for (const count of Object.values(seen)) expect(count).toBeGreaterThan(50);
  });
});
