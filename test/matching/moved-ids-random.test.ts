/**
 * Random retries and refunds while the rules change. A request is charged once, under whichever key its id is kept.
 *
 * Repeat a failing history with `SEED=n npx vitest run test/matching/moved-ids-random.test.ts`.
 */
import { describe, expect, it } from 'vitest';
import { EarlierRuleSets } from '../../src/matching/earlier-rule-sets.ts';
import { RuleSet } from '../../src/matching/rule-set.ts';
import { limiterRulesOf } from '../../src/rules/limiter-rules.ts';
import { matchingForm } from '../../src/rules/matching-form.ts';
import { readRules } from '../../src/rules/read-rules.ts';
import type { RuleDefinition } from '../../src/rules/rule-definition.ts';
import { tableOf } from '../partition/fake-driver.ts';
import { Random } from '../sim/random.ts';
import { DrivenCluster } from './driven-cluster.ts';

/** Each charge lowers the remaining cost of one of these keys. */
const LIMIT = 1_000;
const RULES = ['user', 'ip', '[ip, user]', '[]', 'org'].map(
  (key, place) =>
    `  - { id: r${place}, key: ${key}, group: g${place}, windows: { limit: ${LIMIT}, per: hour } }`,
);
const PARTITIONS = 4;
const HORIZON_MILLIS = 120_000;

function definitionsOf(rules: readonly string[]): readonly RuleDefinition[] {
  const read = readRules(`rules:\n${rules.join('\n')}\n`);
  if (read.kind !== 'rules') throw new Error(JSON.stringify(read));
  return read.definitions;
}

/** An answer, and the expected contents. */
interface Reported {
  readonly found: unknown;
  readonly expected: object;
}

interface Use {
  readonly descriptors: Readonly<Record<string, string>>;
  readonly receipt: object;
  isRefunded: boolean;
}

class History {
  readonly #random: Random;
  readonly #cluster: DrivenCluster;
  readonly #uses = new Map<string, Use>();
  readonly #ruleSets = new EarlierRuleSets(() => 0);
  #before: readonly { readonly definitions: string; readonly horizonMillis: number }[] = [];
  #definitions: readonly RuleDefinition[];
  #version = 1;
  readonly seen = { retried: 0, refunded: 0, moved: 0 };

  constructor(seed: number) {
    this.#random = new Random(seed);
    this.#definitions = this.#drawRules();
    const { ruleSet, table } = this.#made();
    const partitionOf = (key: string): number =>
      key.length === 1
        ? 0
        : 1 + (new TextEncoder().encode(key).reduce((sum, byte) => sum + byte, 0) % (PARTITIONS - 1));
    this.#cluster = new DrivenCluster({ partitions: PARTITIONS, partitionOf, ruleSet, table });
  }

  #drawRules(): readonly RuleDefinition[] {
    const some = RULES.filter(() => this.#random.chance(0.5));
    const drawn = some.length === 0 ? [this.#random.pick(RULES)] : some;
    return definitionsOf(this.#random.chance(0.5) ? drawn : drawn.toReversed());
  }

  #made(): { readonly ruleSet: RuleSet; readonly table: ReturnType<typeof tableOf> } {
    return {
      ruleSet: new RuleSet(this.#version, this.#definitions),
      table: tableOf(this.#version, ...limiterRulesOf(this.#definitions)),
    };
  }

  #changeRules(): void {
    const before = matchingForm(this.#definitions);
    this.#definitions = this.#drawRules();
    this.#version += 1;
    if (matchingForm(this.#definitions) !== before) {
      const others = this.#before.filter(({ definitions }) => definitions !== before);
      this.#before = [{ definitions: before, horizonMillis: HORIZON_MILLIS }, ...others];
      this.seen.moved += 1;
    }
    const { ruleSet, table } = this.#made();
    this.#cluster.follow(ruleSet, table, this.#ruleSets.of(this.#before));
  }

  /** The costs that are granted and not given back. */
  get #charged(): number {
    const all = this.#cluster.partitions.flatMap(({ partition }) => [...partition.inspect()]);
    const runs = all.flatMap((one) => (one.kind === 'key' ? one.runs : []));
    return runs.reduce((sum, { cost }) => sum + cost, 0);
  }

  step(): readonly Reported[] {
    const random = this.#random;
    const draw = random.below(10);
    if (draw < 3) this.#changeRules();
    const known = [...this.#uses.keys()];
    if (known.length === 0 || draw < 5) return this.#ask();
    const id = random.pick(known);
    const use = this.#uses.get(id)!;
    const charged = this.#charged;
    if (draw < 7 || use.isRefunded) {
      const answer = this.#cluster.ask(use.descriptors, id);
      const expected = use.isRefunded
        ? { kind: 'conflict', field: 'requestId' }
        : { kind: 'decision', isRepeat: true, decision: { allowed: true, decided: use.receipt } };
      this.seen.retried += 1;
      return [
        { found: answer, expected },
        { found: { charged: this.#charged }, expected: { charged } },
      ];
    }
    const answer = this.#cluster.refund(use.descriptors, id);
    use.isRefunded = true;
    this.seen.refunded += 1;
    return [
      { found: answer, expected: { kind: 'refund', refund: { refunded: true } } },
      { found: { isLess: this.#charged < charged }, expected: { isLess: true } },
    ];
  }

  #ask(): readonly Reported[] {
    const random = this.#random;
    const id = `r${this.#uses.size}`;
    const descriptors = {
      user: `u${random.below(3)}`,
      ip: `10.0.0.${random.below(3)}`,
      org: `o${random.below(2)}`,
    };
    const answer = this.#cluster.ask(descriptors, id);
    if (answer.kind === 'decision')
      this.#uses.set(id, { descriptors, receipt: answer.decision.decided, isRefunded: false });
    return [{ found: answer, expected: { kind: 'decision', decision: { allowed: true } } }];
  }
}

describe('a request with an id, while the rules change', () => {
  const { SEED } = process.env;
  const seeds = SEED === undefined ? Array.from({ length: 60 }, (_, i) => i + 1) : [Number(SEED)];

  it.each(seeds)('is charged once, and refunded once (seed %i)', (seed) => {
    const history = new History(seed);
    for (let i = 0; i < 60; i += 1)
      for (const { found, expected } of history.step()) expect(found).toMatchObject(expected);
    expect(Math.min(...Object.values(history.seen))).toBeGreaterThan(0);
  });
});
