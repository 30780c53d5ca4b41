/** The figures of one node as it sends them to another, and the sum over all nodes. Pure functions. */
import {
  USAGE_COLUMNS,
  USAGE_MINUTES_MAX,
  type UsageCounts,
  type UsageQuery,
  type UsageReport,
} from '../api/usage.ts';
import { millisOfStep } from './answer-times.ts';
import { cut, sumOf, type TopList } from './top-keys.ts';

const WIDTH = USAGE_COLUMNS.length;
const MINUTE_MILLIS = 60_000;

/** The counts of one rule. */
export interface RuleUsage {
  readonly ruleId: string;
  /** By column of `USAGE_COLUMNS`. */
  readonly counts: readonly number[];
}

/** The figures of one node. */
export interface NodeUsage {
  /** Rules with an answer or a shadow decision in the minutes asked for, each once. */
  readonly rules: readonly RuleUsage[];
  /** All these rules together: the columns of the first minute, then of the second, and so on. */
  readonly history: readonly number[];
  /** First minute that `allowed` and `denied` cover, counted since 1970. */
  readonly topFromMinute: number;
  readonly allowed: TopList;
  readonly denied: TopList;
  /** By minute: 0 if no answer was timed, else the step of the 99th percentile + 1 (`MinuteTimes`). */
  readonly late?: readonly number[];
}

/** The figures of all nodes that are summed up. */
export interface UsageMerge {
  readonly query: UsageQuery;
  /** The last of the minutes asked for, counted since 1970. */
  readonly untilMinute: number;
  readonly reported: ReadonlyMap<number, NodeUsage>;
  /** Nodes that sent nothing in time. */
  readonly silent: readonly number[];
}

/** Sums up the figures. @param merge `query.minutes` from 1 to `USAGE_MINUTES_MAX`; each node sent that many */
export function reportOf({ query, untilMinute, reported, silent }: UsageMerge): UsageReport {
  const { minutes, top } = query;
  const usages = [...reported.values()];
  const counts = new Map<string, number[]>();
  for (const { rules } of usages)
    for (const rule of rules) {
      const sum = counts.get(rule.ruleId) ?? zeros(WIDTH);
      counts.set(rule.ruleId, sum);
      addTo(sum, rule.counts);
    }
  const history = zeros(Math.min(minutes, USAGE_MINUTES_MAX) * WIDTH);
  for (const usage of usages) addTo(history, usage.history);
  const ofColumn = (column: number): number[] => history.filter((_, at) => at % WIDTH === column);
  const [allowed, denied, unavailable, degraded] = USAGE_COLUMNS.map((_, column) => ofColumn(column));
  return {
    minutes,
    nodes: [...reported.keys()].sort((a, b) => a - b),
    silent: [...silent].sort((a, b) => a - b),
    rules: [...counts]
      .sort(([a], [b]) => (a < b ? -1 : 1))
      .map(([rule, sum]) => Object.assign({ rule }, countsOf(sum))),
    history: {
      fromMillis: (untilMinute + 1 - minutes) * MINUTE_MILLIS,
      allowed: allowed ?? [],
      denied: denied ?? [],
      unavailable: unavailable ?? [],
      degraded: degraded ?? [],
      ...(usages.some(({ late }) => late !== undefined) && { p99Millis: lateOf(usages, minutes) }),
    },
    ...(top > 0 && {
      top: {
        fromMillis: Math.min(...usages.map(({ topFromMinute }) => topFromMinute)) * MINUTE_MILLIS,
        allowed: cut(sumOf(usages.map((usage) => usage.allowed)), top).keys,
        denied: cut(sumOf(usages.map((usage) => usage.denied)), top).keys,
      },
    }),
  };
}

/** The percentile of the slowest node in each minute. Of the answers of all nodes, at most 1 in 100 took longer. */
function lateOf(usages: readonly NodeUsage[], minutes: number): (number | null)[] {
  return zeros(minutes).map((_, minute) => {
    const late = Math.max(0, ...usages.map((usage) => usage.late?.[minute] ?? 0));
    return late === 0 ? null : millisOfStep(late - 1);
  });
}

/** An array of zeros. */
export function zeros(length: number): number[] {
  return Array.from({ length }, () => 0);
}

function addTo(sums: number[], counts: readonly number[]): void {
  for (let at = 0; at < sums.length; at += 1) sums[at] = (sums[at] ?? 0) + (counts[at] ?? 0);
}

function countsOf(counts: readonly number[]): UsageCounts {
  const [allowed = 0, denied = 0, unavailable = 0, degraded = 0, wouldAllow = 0, wouldDeny = 0] = counts;
  return { allowed, denied, unavailable, degraded, wouldAllow, wouldDeny };
}
