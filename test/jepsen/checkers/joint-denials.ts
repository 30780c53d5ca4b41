/**
 * Denials under limits that rules find that were certainly wrong in real time: at no moment while it was asked could one of its
 * limits have been spent, also by what was reserved for others. Whatever may count does so from when it was asked until its
 * window is over, or until its key was reset, not longer: what stays charged, stays found. Whoever may be blocked may be denied. Legal
 * while something is broken, an error in a healthy cluster.
 */
import type { JointHistory } from '../joint-history.ts';
import { groupWindowMillis } from '../model.ts';
import { type NemesisBand, overlaps } from '../nemesis-log.ts';
import { NO_JOINT } from './joint-limits.ts';
import { budgetName, Homes, type JointRequest, jointRequests } from './joint-requests.ts';
import { KeyChanges } from './key-changes.ts';
import { LimitsInForce } from './limits-in-force.ts';
import { Load } from './load.ts';
import { type CheckResult, Findings, skipped } from './result.ts';

export interface JointDenialOptions {
  readonly driftPpm: number;
  readonly bands: readonly NemesisBand[];
  /** How long after a fault requests made before may take effect, and time may have stood still. */
  readonly settleMillis: number;
  /** What a planned change of leaders may cost of group time. */
  readonly slackMillis: number;
}

const NANOS_PER_MILLI = 1e6;

export function checkJointDenials(joint: JointHistory, options: JointDenialOptions): CheckResult {
  if (joint.asks.length === 0) return skipped('joint-denials', NO_JOINT);
  const findings = new Findings('joint-denials');
  const inForce = new LimitsInForce(joint.changes);
  const homes = new Homes(joint.asks);
  const keyChanges = new KeyChanges(joint.keyChanges);
  const loads = loadsOf(joint, { homes, keyChanges }, options);
  const settleNanos = options.settleMillis * NANOS_PER_MILLI;
  for (const ask of joint.asks) {
    const { allowed, limits, cost, invokeNanos, completeNanos, requestId } = ask;
    if (allowed === null) continue;
    // What it reserved itself is in the load already, and so is what was granted.
    const own = allowed || homes.mayReserve(ask) ? 0 : cost;
    /** None of its limits can have been spent. */
    const hadRoom = limits.every((limit) => {
      const most = loads.get(budgetName(limit))?.most(invokeNanos, completeNanos) ?? 0;
      return most + own <= inForce.least(limit.rule, invokeNanos, completeNanos);
    });
    if (hadRoom) findings.tally(allowed ? 'grantedWithRoom' : 'deniedWithRoom');
    if (allowed) continue;
    findings.tally(ask.blocked ? 'blocked' : 'denials');
    if (ask.blocked ? keyChanges.mayBeBlocked(ask) : !hadRoom) continue;
    const isFaulty = options.bands.some((band) => overlaps(band, invokeNanos, completeNanos, settleNanos));
    if (isFaulty) continue;
    const at = (invokeNanos / NANOS_PER_MILLI).toFixed(3);
    const names = limits.map(budgetName).join(' and ');
    const why = ask.blocked ? 'was not blocked' : 'had room';
    findings.add(`'${requestId}' of cost ${cost} was denied at ${at} ms, though ${names} ${why}`);
  }
  return findings.result();
}

/** By limit, what all requests together may have had charged. */
function loadsOf(
  joint: JointHistory,
  { homes, keyChanges }: { readonly homes: Homes; readonly keyChanges: KeyChanges },
  options: JointDenialOptions,
): Map<string, Load> {
  const changes = new Map<string, { at: number; by: number }[]>();
  const { driftPpm, slackMillis } = options;
  for (const request of jointRequests(joint)) {
    const isTold = request.attempts.every(({ allowed }) => allowed === true);
    for (const [fromNanos, toNanos] of chargesOf(request, homes)) {
      for (const limit of request.limits) {
        // Real time may also run slower than group time, by as much.
        const liveMillis =
          groupWindowMillis(groupWindowMillis(limit.windowMillis, driftPpm), driftPpm) + slackMillis;
        // What was told as granted is charged no later than that; what is in doubt may come late.
        const resetNanos = isTold ? keyChanges.isResetFrom(limit.key, toNanos) : Infinity;
        const overAt = overNanos(fromNanos, toNanos, liveMillis * NANOS_PER_MILLI, options);
        const at = Math.min(overAt, resetNanos);
        const name = budgetName(limit);
        const own = changes.get(name) ?? [];
        changes.set(name, own);
        own.push({ at: fromNanos, by: request.cost }, { at, by: -request.cost });
      }
    }
  }
  return new Map([...changes].map(([name, own]) => [name, new Load(own)]));
}

/**
 * Between which moments it may have been charged, as often as that may be: each attempt may reserve anew, also one that is denied in
 * the end. Where all limits lie together nothing is reserved, and one id is charged once.
 */
function chargesOf({ attempts, grant }: JointRequest, homes: Homes): (readonly [number, number])[] {
  const sent = attempts.filter(({ class: outcome, status }) => outcome !== 'fail' || status !== 0);
  if (attempts.some((ask) => homes.mayReserve(ask)))
    return sent.map(({ invokeNanos, completeNanos }) => [invokeNanos, completeNanos]);
  if (grant !== undefined) return [[grant.invokeNanos, grant.completeNanos]];
  const open = sent.filter(({ class: outcome }) => outcome === 'info');
  const [first] = open;
  return first === undefined
    ? []
    : [[first.invokeNanos, Math.max(...open.map(({ completeNanos }) => completeNanos))]];
}

/** When it is out of the window: later by every fault that it may have waited for, or in which time stood still. */
function overNanos(
  fromNanos: number,
  toNanos: number,
  liveNanos: number,
  { bands, settleMillis }: JointDenialOptions,
): number {
  let over = toNanos + liveNanos;
  const settleNanos = settleMillis * NANOS_PER_MILLI;
  for (const { startNanos, endNanos } of bands.toSorted((a, b) => a.startNanos - b.startNanos)) {
    const healedNanos = endNanos === null ? Infinity : endNanos + settleNanos;
    if (startNanos <= over && healedNanos >= fromNanos) over = Math.max(over, healedNanos + liveNanos);
  }
  return over;
}
