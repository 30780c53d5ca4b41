/**
 * Finds certain violations in real time: grants that exceed the limit no matter when in their intervals they were made.
 * It uses no receipts and trusts no clock but the recorder's.
 */
import { findOverGrant } from '../../cluster/over-grant.ts';
import { gainedMillis } from '../gained-time.ts';
import type { NemesisBand } from '../nemesis-log.ts';
import { type Budget, nameOf } from './budgets.ts';
import { type CheckResult, Findings } from './result.ts';

const NANOS_PER_MILLI = 1e6;

export function checkRealTime(budgets: readonly Budget[], bands: readonly NemesisBand[]): CheckResult {
  const findings = new Findings('real-time');
  for (const budget of budgets) {
    // For callers' timestamps the limit holds in the callers' time, which the certificate check covers.
    const grants = budget.grants.filter(({ op }) => op.timestampMillis === null);
    findings.tally('grants', grants.length);
    const observed = grants.map(({ op, invokeNanos, completeNanos }) => ({
      invokeMillis: invokeNanos / NANOS_PER_MILLI + gainedMillis(bands, invokeNanos),
      completeMillis: completeNanos / NANOS_PER_MILLI + gainedMillis(bands, completeNanos),
      cost: op.cost,
    }));
    const violation = findOverGrant(observed, budget.limit, budget.windowMillis);
    if (violation !== undefined) findings.add(`${nameOf(budget)}: ${violation}`);
  }
  return findings.result();
}
