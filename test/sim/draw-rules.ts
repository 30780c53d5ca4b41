/**
 * The rule tables that a seed's cluster goes through: rules change, leave and come back. In worlds with meters, rules
 * also have other meters than a log of every millisecond.
 */
import type { Timing } from '../../src/config/config.ts';
import { groupMillisMax, PARTITION_BYTES_DEFAULT, type RuleTable } from '../../src/limiter/rules.ts';
import type { Random } from './random.ts';
import type { Settings } from './settings.ts';
import type { Spread } from './spreads.ts';
import type { Rule } from '../../src/api/rule.ts';

/** The most that machines' clocks may differ. All of them may be faster than real time by a fifth of that. */
export const DRIFT_PPM = 100;
/** A full window of this length fits into a run. */
const WINDOW_MILLIS_MAX = 10_000;

/** The first one is in force from the start. */
export function drawTables(
  random: Random,
  timing: Timing,
  { spread, isSmall }: { readonly spread: Spread; readonly isSmall: boolean },
): RuleTable[] {
  // Known users fill the state: many at once, and for long.
  const windows = isSmall ? [1_000, 5_000] : spread.windowsMillis;
  const limits = isSmall ? [10, 40] : [1, 2, 3, 10, 40];
  let byRequest: Rule = {
    id: 'default',
    limit: random.pick(limits),
    windowMillis: random.pick(windows),
    clock: 'request',
  };
  let byCluster: Rule = {
    id: 'cluster',
    limit: random.pick(limits),
    windowMillis: random.pick(windows),
    clock: 'cluster',
  };
  const tables: RuleTable[] = [];
  // A rule leaves, and comes back with the next table.
  const without = random.chance(0.5) ? random.pick([2, 2, 3]) : 0;
  for (let version = 1; version <= 4; version += 1) {
    tables.push({
      version,
      rules: version === without ? [byRequest] : [byRequest, byCluster],
      requestIdHorizonMillis: drawHorizon(random, timing, spread.shortestHorizon),
      clockDriftPpm: DRIFT_PPM,
      partitionBytesMax: isSmall ? random.pick([4_096, 8_000, 20_000, 60_000]) : PARTITION_BYTES_DEFAULT,
    });
    byRequest = changed(random, byRequest);
    byCluster = changed(random, byCluster);
  }
  return tables;
}

function changed(random: Random, rule: Rule): Rule {
  const windowMillis = Math.floor(rule.windowMillis * random.pick([0.5, 1, 1, 1.5, 4]));
  return {
    ...rule,
    limit: random.chance(0.8) ? random.between(1, 10) : random.between(1, 60),
    windowMillis: Math.min(WINDOW_MILLIS_MAX, Math.max(20, windowMillis)),
  };
}

/** From the shortest legal value to the longest whose end a run reaches. */
function drawHorizon(random: Random, { requestDeadlineMillis }: Timing, shortest: number): number {
  const least = groupMillisMax(2 * requestDeadlineMillis, DRIFT_PPM);
  const longest = Math.max(60_000, least);
  return random.chance(shortest) ? least : Math.floor(least * (longest / least) ** random.unit());
}

type MeterFields = Omit<Rule, 'id' | 'limit' | 'windowMillis' | 'clock'>;
type Draw = (random: Random, rule: Rule) => MeterFields;

/** Meters whose grants are forgotten after their window. */
const COUNTED: readonly Draw[] = [
  () => ({}),
  (random, { windowMillis }) => ({
    granularityMillis: Math.max(2, Math.floor(windowMillis / random.pick([1, 4, 60]))),
  }),
  () => ({ meter: 'slidingCounter' }),
  () => ({ meter: 'fixedWindow' }),
];
/** Buckets, which may take much longer than a window to drain when limits fall. */
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
 * @param mayBeFull the state has little room, so grants must be forgotten soon: there are no buckets
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

/** The id by which a request names one of the two rules; with documents, that of its window. */
export function idOfRule({ config }: Pick<Settings, 'config'>, name: 'default' | 'cluster'): string {
  const rule = config.rules.rules.find(({ id }) => id === name || id.startsWith(`${name}/`));
  return rule?.id ?? name;
}
