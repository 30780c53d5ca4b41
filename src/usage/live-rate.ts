/** Measures how many answers all nodes give per second. It compares two readings of the counts by minute. */
import { USAGE_OUTCOMES, type UsageOutcome, type UsageReport } from '../api/usage.ts';

const MINUTE_MILLIS = 60_000;
/** A reading that is older covers none of the same minutes. */
const APART_MILLIS_MAX = MINUTE_MILLIS;

interface Reading {
  readonly report: UsageReport;
  readonly atMillis: number;
}

/** The rate of a whole cluster. */
export class LiveRate {
  #before: Reading | undefined;

  /**
   * Takes a reading and returns answers per second since the reading before. Undefined if the two cannot be
   * compared: there is none, it is too old, the nodes differ, or one has restarted.
   *
   * @param report of at least two minutes
   * @param atMillis when it was asked for, on the monotonic clock
   */
  seen(report: UsageReport, atMillis: number): Record<UsageOutcome, number> | undefined {
    const before = this.#before;
    const now = { report, atMillis };
    this.#before = now;
    if (before === undefined) return undefined;
    const elapsed = atMillis - before.atMillis;
    if (elapsed <= 0 || elapsed > APART_MILLIS_MAX || !isOfSameNodes(before, now)) return undefined;
    const grown = USAGE_OUTCOMES.map((outcome) => [outcome, grownBy(before, now, outcome)] as const);
    // A count that shrinks means that a node has restarted.
    if (grown.some(([, count]) => count < 0)) return undefined;
    const rates = grown.map(([outcome, count]) => [outcome, (1_000 * count) / elapsed] as const);
    return Object.fromEntries(rates) as Record<UsageOutcome, number>;
  }
}

function isOfSameNodes({ report: a }: Reading, { report: b }: Reading): boolean {
  return a.nodes.length === b.nodes.length && a.nodes.every((node, i) => node === b.nodes[i]);
}

/** The growth in minutes that both readings have, plus all of the minutes that only the later one has. */
function grownBy(before: Reading, after: Reading, outcome: UsageOutcome): number {
  const was = before.report.history;
  const is = after.report.history;
  const later = Math.round((is.fromMillis - was.fromMillis) / MINUTE_MILLIS);
  return is[outcome].reduce((sum, count, i) => sum + count - (was[outcome][i + later] ?? 0), 0);
}
