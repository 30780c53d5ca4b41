/**
 * Finds certain violations of limits in real time, for described requests. A violation: within one window of a limit,
 * more was granted than the limit in force at the last of these grants allows, wherever in their intervals the grants
 * were made. A granted request counts at each of its limits. A grant that may have been refunded counts until the
 * refund was requested. Settled (post-paid) costs may exceed a limit themselves, and count for later grants. A blocked
 * key gets no grant. There are no false alarms.
 */
import { gainedMillis } from '../gained-time.ts';
import type { JointHistory, LimitAsked } from '../joint-history.ts';
import type { NemesisBand } from '../nemesis-log.ts';
import { budgetName, Homes, type JointRequest, jointRequests } from './joint-requests.ts';
import { KeyChanges } from './key-changes.ts';
import { LimitsInForce } from './limits-in-force.ts';
import { type CheckResult, Findings, skipped } from './result.ts';

const NANOS_PER_MILLI = 1e6;
export const NO_JOINT = 'there were no requests under limits that rules find';

/** A charge at one limit. */
interface Charge {
  readonly cost: number;
  readonly settled: boolean;
  readonly invokeNanos: number;
  readonly completeNanos: number;
  readonly givenBackFromNanos: number;
}

export function checkJointLimits(joint: JointHistory, bands: readonly NemesisBand[]): CheckResult {
  if (joint.asks.length === 0) return skipped('joint-limits', NO_JOINT);
  const findings = new Findings('joint-limits');
  for (const [key, groups] of new Homes(joint.asks).divided)
    findings.add(`key '${key}' was decided by groups ${groups.join(', ')}`);
  const inForce = new LimitsInForce(joint.changes);
  const keyChanges = new KeyChanges(joint.keyChanges);
  const budgets = new Map<string, { readonly limit: LimitAsked; readonly charges: Charge[] }>();
  for (const request of jointRequests(joint)) {
    const { grant, limits, cost, settled } = request;
    if (grant === undefined) continue;
    findings.tally('grants');
    if (limits.length > 1) findings.tally('underSeveralLimits');
    if (settled) findings.tally('settled');
    else checkBlocks(request, keyChanges, findings);
    for (const limit of limits) {
      const { invokeNanos, completeNanos } = grant;
      const resetFromNanos = keyChanges.mayBeResetFrom(limit.key, invokeNanos);
      // A refund reaches all limits of its request, in all their partitions.
      const givenBackFromNanos = Math.min(request.givenBackFromNanos, resetFromNanos);
      const name = budgetName(limit);
      const budget = budgets.get(name) ?? { limit, charges: [] };
      budgets.set(name, budget);
      budget.charges.push({ cost, settled, invokeNanos, completeNanos, givenBackFromNanos });
    }
  }
  findings.tally('budgets', budgets.size);
  findings.tally('keyChanges', joint.keyChanges.filter(({ class: outcome }) => outcome === 'ok').length);
  findings.tally('changes', joint.changes.filter(({ class: outcome }) => outcome === 'ok').length);
  for (const { limit, charges } of budgets.values()) {
    const finding = overCharged(limit, charges, inForce, bands);
    if (finding !== undefined) findings.add(finding);
  }
  return findings.result();
}

function checkBlocks(
  { requestId, limits, grant }: JointRequest,
  keyChanges: KeyChanges,
  findings: Findings,
): void {
  if (grant === undefined) return;
  const { invokeNanos, completeNanos } = grant;
  const blocked = limits.find(({ key }) => keyChanges.isBlocked(key, invokeNanos, completeNanos));
  if (blocked !== undefined)
    findings.add(`'${requestId}' was granted while key '${blocked.key}' was blocked`);
}

/**
 * Ends a span at each answer. Everything granted within a span shorter than the window still counted when its last
 * grant was decided, except for possible refunds, and that last grant was decided by a limit that may have been in
 * force while it was open. A settled cost counts if its answer arrived before the last of the other grants was
 * requested.
 */
function overCharged(
  limit: LimitAsked,
  charges: readonly Charge[],
  inForce: LimitsInForce,
  bands: readonly NemesisBand[],
): string | undefined {
  const { rule, windowMillis } = limit;
  const millisAt = (nanos: number): number => nanos / NANOS_PER_MILLI + gainedMillis(bands, nanos);
  const least = inForce.least(rule, -Infinity, Infinity);
  const sorted = charges.toSorted((a, b) => a.completeNanos - b.completeNanos);
  for (const [i, { completeNanos: endNanos }] of sorted.entries()) {
    const beginMillis = millisAt(endNanos) - windowMillis;
    const inside: Charge[] = [];
    for (let j = i; j >= 0; j -= 1) {
      const charge = sorted[j];
      if (charge === undefined || millisAt(charge.completeNanos) <= beginMillis) break;
      if (millisAt(charge.invokeNanos) <= beginMillis || charge.givenBackFromNanos < endNanos) continue;
      inside.push(charge);
    }
    if (costOf(inside) <= least) continue;
    const granted = inside.filter(({ settled }) => !settled);
    const lastInvokeNanos = Math.max(...granted.map(({ invokeNanos }) => invokeNanos));
    const maybeLast = granted.filter(({ completeNanos }) => completeNanos >= lastInvokeNanos);
    const lastFromNanos = Math.min(...maybeLast.map(({ invokeNanos }) => invokeNanos));
    const spent = costOf(
      inside.filter(({ settled, completeNanos }) => !settled || completeNanos < lastFromNanos),
    );
    if (granted.length === 0) continue;
    const most = Math.max(
      ...maybeLast.map(({ invokeNanos, completeNanos }) => inForce.most(rule, invokeNanos, completeNanos)),
    );
    if (spent <= most) continue;
    const at = (endNanos / NANOS_PER_MILLI).toFixed(3);
    return `${budgetName(limit)}: ${spent} granted within ${windowMillis} ms, limit ${most}, up to ${at} ms`;
  }
  return undefined;
}

function costOf(charges: readonly Charge[]): number {
  return charges.reduce((sum, { cost }) => sum + cost, 0);
}
