/** Draws the meters of the rules of a seed, in worlds that have more than logs of every millisecond. */
import type { Rule } from '../../src/api/rule.ts';
import type { RuleTable } from '../../src/limiter/rules.ts';
import type { Random } from './random.ts';

type MeterFields = Omit<Rule, 'id' | 'limit' | 'windowMillis' | 'clock'>;
type Draw = (random: Random, rule: Rule) => MeterFields;

const COUNTED: readonly Draw[] = [
  () => ({}),
  (random, { windowMillis }) => ({
    granularityMillis: Math.max(2, Math.floor(windowMillis / random.pick([1, 4, 60]))),
  }),
  () => ({ meter: 'slidingCounter' }),
  () => ({ meter: 'fixedWindow' }),
];
const FLOWING: readonly Draw[] = [
  (random, { limit }) => ({ meter: 'tokenBucket', burst: random.pick([1, limit, 2 * limit]) }),
  () => ({ meter: 'tokenBucket' }),
  (random, { limit }) => ({
    meter: 'leakyBucket',
    burst: random.pick([1, limit]),
    queue: random.between(1, limit),
  }),
];

/**
 * The same tables with meters. A rule keeps its kind from table to table, or changes it.
 *
 * @param mayBeFull grants must be forgotten soon to make room; a bucket may take much longer than a window to drain
 * when limits fall
 */
export function withMeters(random: Random, tables: readonly RuleTable[], mayBeFull: boolean): RuleTable[] {
  const draws = mayBeFull ? COUNTED : [...COUNTED, ...FLOWING];
  const drawOf = new Map<string, Draw>();
  const drawn = (rule: Rule): Rule => {
    const before = drawOf.get(rule.id);
    const draw = before === undefined || random.chance(0.5) ? random.pick(draws) : before;
    drawOf.set(rule.id, draw);
    return { ...rule, ...draw(random, rule) };
  };
  return tables.map((table) => ({ ...table, rules: table.rules.map(drawn) }));
}
