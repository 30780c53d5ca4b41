/**
 * Certain violations of limits that rules find, in real time: of what clients were told, more counts at one limit within its
 * window than was in force for whatever was granted last, wherever in their intervals the grants were made. A granted request
 * counts at each of its limits; what may have been given back counts until that was asked for. No false alarm.
 */
import { gainedMillis } from '../gained-time.ts';
import type { JointHistory, LimitAsked } from '../joint-history.ts';
import type { NemesisBand } from '../nemesis-log.ts';
import { budgetName, Homes, jointRequests } from './joint-requests.ts';
import { LimitsInForce } from './limits-in-force.ts';
import { type CheckResult, Findings, skipped } from './result.ts';

const NANOS_PER_MILLI = 1e6;
export const NO_JOINT = 'nobody asked under limits that rules find';

/** At one limit. */
interface Charge {
  readonly cost: number;
  readonly invokeNanos: number;
  readonly completeNanos: number;
  readonly givenBackFromNanos: number;
}

export function checkJointLimits(joint: JointHistory, bands: readonly NemesisBand[]): CheckResult {
  if (joint.asks.length === 0) return skipped('joint-limits', NO_JOINT);
  const findings = new Findings('joint-limits');
  const homes = new Homes(joint.asks);
  for (const [key, groups] of homes.divided)
    findings.add(`key '${key}' was decided by groups ${groups.join(', ')}`);
  const inForce = new LimitsInForce(joint.changes);
  const budgets = new Map<string, { readonly limit: LimitAsked; readonly charges: Charge[] }>();
  for (const request of jointRequests(joint)) {
    const { grant, limits, cost } = request;
    if (grant === undefined) continue;
    findings.tally('grants');
    if (limits.length > 1) findings.tally('underSeveralLimits');
    for (const limit of limits) {
      const { invokeNanos, completeNanos } = grant;
      const givenBackFromNanos = homes.mayGiveBack(request, limit) ? request.givenBackFromNanos : Infinity;
      const name = budgetName(limit);
      const budget = budgets.get(name) ?? { limit, charges: [] };
      budgets.set(name, budget);
      budget.charges.push({ cost, invokeNanos, completeNanos, givenBackFromNanos });
    }
  }
  findings.tally('budgets', budgets.size);
  findings.tally('changes', joint.changes.filter(({ class: outcome }) => outcome === 'ok').length);
  for (const { limit, charges } of budgets.values()) {
    const finding = overCharged(limit, charges, inForce, bands);
    if (finding !== undefined) findings.add(finding);
  }
  return findings.result();
}

/**
 * Ends a span at each answer. All that was made within it, shorter than the window, counted when the last of it was decided, but
 * for what may have been given back; and the last was decided by a limit that may have been in force while it was asked.
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
    let spent = 0;
    let lastInvokeNanos = -Infinity;
    for (let j = i; j >= 0; j -= 1) {
      const charge = sorted[j];
      if (charge === undefined || millisAt(charge.completeNanos) <= beginMillis) break;
      const { cost, invokeNanos, givenBackFromNanos } = charge;
      if (millisAt(invokeNanos) <= beginMillis || givenBackFromNanos < endNanos) continue;
      inside.push(charge);
      spent += cost;
      lastInvokeNanos = Math.max(lastInvokeNanos, invokeNanos);
    }
    if (spent <= least) continue;
    const maybeLast = inside.filter(({ completeNanos }) => completeNanos >= lastInvokeNanos);
    const most = Math.max(
      ...maybeLast.map(({ invokeNanos, completeNanos }) => inForce.most(rule, invokeNanos, completeNanos)),
    );
    if (spent <= most) continue;
    const at = (endNanos / NANOS_PER_MILLI).toFixed(3);
    return `${budgetName(limit)}: ${spent} granted within ${windowMillis} ms, limit ${most}, up to ${at} ms`;
  }
  return undefined;
}
