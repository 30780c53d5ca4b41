/**
 * Checks the same limits as joint-limits.ts by the order and the time of the log, to the millisecond, for grants with
 * receipts. Such a grant counts in the partition of its first key, at all of its limits there. The time between two
 * such grants is the group time of their partition. Reservations in other partitions have no receipt and are left out.
 * There are no false alarms.
 */
import type { JointHistory, LimitAsked, Receipt } from '../joint-history.ts';
import { groupWindowMillis } from '../model.ts';
import { NO_JOINT } from './joint-limits.ts';
import { budgetName, Homes, type JointGrant, type JointRequest, jointRequests } from './joint-requests.ts';
import { KeyChanges } from './key-changes.ts';
import { LimitsInForce } from './limits-in-force.ts';
import { type CheckResult, Findings, skipped } from './result.ts';

/** A charge at one limit, with its receipt. */
interface Charge {
  readonly request: JointRequest;
  readonly grant: JointGrant;
  readonly receipt: Receipt;
}

export function checkJointReceipts(
  joint: JointHistory,
  { driftPpm }: { readonly driftPpm: number },
): CheckResult {
  const homes = new Homes(joint.asks);
  const keyChanges = new KeyChanges(joint.keyChanges);
  const inForce = new LimitsInForce(joint.changes);
  const budgets = new Map<string, { readonly limit: LimitAsked; readonly charges: Charge[] }>();
  const findings = new Findings('joint-receipts');
  for (const request of jointRequests(joint)) {
    const { grant, limits } = request;
    const receipt = receiptOf(request);
    if (grant === undefined || receipt === undefined) continue;
    findings.tally('receipts');
    for (const limit of limits) {
      if (homes.areTogether(limits[0]?.key ?? '', limit.key) !== true) continue;
      findings.tally('charges');
      const name = budgetName(limit);
      const budget = budgets.get(name) ?? { limit, charges: [] };
      budgets.set(name, budget);
      budget.charges.push({ request, grant, receipt });
    }
  }
  if (budgets.size === 0) return skipped('joint-receipts', NO_JOINT);
  for (const { limit, charges } of budgets.values()) {
    charges.sort((a, b) => inLog(a.receipt, b.receipt));
    for (const [i, charge] of charges.entries()) {
      // A settled cost is charged regardless of what counts already.
      if (charge.request.settled) continue;
      const finding = overChargedBy(charge, charges.slice(0, i + 1), {
        limit,
        inForce,
        keyChanges,
        driftPpm,
      });
      if (finding !== undefined) findings.add(finding);
    }
  }
  return findings.result();
}

/** The receipt from any attempt or refund that reported it. */
function receiptOf({ attempts, refunds }: JointRequest): Receipt | undefined {
  const tellers = [
    ...attempts.filter(({ allowed }) => allowed === true),
    ...refunds.filter(({ refunded }) => refunded === true),
  ];
  return tellers.find(({ receipt }) => receipt !== null)?.receipt ?? undefined;
}

function inLog(a: Receipt, b: Receipt): number {
  return a.group - b.group || a.index - b.index || (a.position ?? 0) - (b.position ?? 0);
}

/**
 * Compares what certainly counted when a grant was made, plus the grant, with the largest limit that may have been in
 * force then.
 */
function overChargedBy(
  { grant, receipt }: Charge,
  through: readonly Charge[],
  {
    limit,
    inForce,
    keyChanges,
    driftPpm,
  }: {
    readonly limit: LimitAsked;
    readonly inForce: LimitsInForce;
    readonly keyChanges: KeyChanges;
    readonly driftPpm: number;
  },
): string | undefined {
  const beginMillis = receipt.timeMillis - groupWindowMillis(limit.windowMillis, driftPpm);
  let spent = 0;
  for (let j = through.length - 1; j >= 0; j -= 1) {
    const earlier = through[j];
    if (earlier === undefined || earlier.receipt.timeMillis <= beginMillis) break;
    // If a refund was requested before this grant was answered, the cost may have been free already.
    const givenBackFromNanos = Math.min(
      earlier.request.givenBackFromNanos,
      keyChanges.mayBeResetFrom(limit.key, earlier.grant.invokeNanos),
    );
    const isCounted = earlier.grant === grant || givenBackFromNanos > grant.completeNanos;
    if (isCounted && earlier.receipt.group === receipt.group) spent += earlier.request.cost;
  }
  const most = inForce.most(limit.rule, grant.invokeNanos, grant.completeNanos);
  if (spent <= most) return undefined;
  const { group, index } = receipt;
  return `${budgetName(limit)}: ${spent} count at partition ${group}, index ${index}, limit ${most}`;
}
