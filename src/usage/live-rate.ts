/**
 * How many answers the doors of all nodes give in a second, from what they counted by the minute: the difference of two readings.
 * It reads no clock.
 */
import { USAGE_OUTCOMES, type UsageOutcome, type UsageReport } from '../api/usage.ts';

const MINUTE_MILLIS = 60_000;
/** What was counted longer ago than the minutes of a reading would be missing from the difference. */
const APART_MILLIS_MAX = MINUTE_MILLIS;

interface Reading {
  readonly report: UsageReport;
  readonly atMillis: number;
}

export class LiveRate {
  #before: Reading | undefined;

  /**
   * Answers per second since the reading before; undefined where the two cannot be compared: there was none, it is too old, or
   * other nodes are in it, or began anew.
   *
   * @param report of at least two minutes @param atMillis when it was asked for, on the monotonic clock
   */
  seen(report: UsageReport, atMillis: number): Record<UsageOutcome, number> | undefined {
    const before = this.#before;
    const now = { report, atMillis };
    this.#before = now;
    if (before === undefined) return undefined;
    const elapsed = atMillis - before.atMillis;
    if (elapsed <= 0 || elapsed > APART_MILLIS_MAX || !isOfSameNodes(before, now)) return undefined;
    const grown = USAGE_OUTCOMES.map((outcome) => [outcome, grownBy(before, now, outcome)] as const);
    // Who counts less than before was started anew.
    if (grown.some(([, count]) => count < 0)) return undefined;
    const rates = grown.map(([outcome, count]) => [outcome, (1_000 * count) / elapsed] as const);
    return Object.fromEntries(rates) as Record<UsageOutcome, number>;
  }
}

function isOfSameNodes({ report: a }: Reading, { report: b }: Reading): boolean {
  return a.nodes.length === b.nodes.length && a.nodes.every((node, i) => node === b.nodes[i]);
}

/** In minutes that both readings have; all of a minute that only the later one has is new. */
function grownBy(before: Reading, after: Reading, outcome: UsageOutcome): number {
  const was = before.report.history;
  const is = after.report.history;
  const later = Math.round((is.fromMillis - was.fromMillis) / MINUTE_MILLIS);
  return is[outcome].reduce((sum, count, i) => sum + count - (was[outcome][i + later] ?? 0), 0);
}
