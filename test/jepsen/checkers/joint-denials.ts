/**
 * Finds denials of described requests (their limits are found by rules) that were certainly wrong in real time: at no
 * moment while the request was open could one of its limits have been used up, not even by reservations for other
 * requests. A charge that may count does so from its invocation until its window is over or its key was reset, and no
 * longer, so a charge that never expires is found. A key that may be blocked may be denied. Wrong denials are legal
 * during a fault, and an error in a healthy cluster.
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
  /** For this long after a fault, earlier requests may still take effect, and time may have stood still. */
  readonly settleMillis: number;
  /** How much group time a planned change of leaders may lose. */
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
    // The load already includes what the request reserved itself, and what was granted.
    const own = allowed || homes.mayReserve(ask) ? 0 : cost;
    /** None of its limits can have been used up. */
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

/** Per limit, everything that all requests together may have charged. */
function loadsOf(
  joint: JointHistory,
  { homes, keyChanges }: { readonly homes: Homes; readonly keyChanges: KeyChanges },
  options: JointDenialOptions,
): Map<string, Load> {
  const changes = new Map<string, { at: number; by: number }[]>();
  const { driftPpm, slackMillis } = options;
  for (const request of jointRequests(joint)) {
    const isReported = request.attempts.every(({ allowed }) => allowed === true);
    for (const [fromNanos, toNanos] of chargesOf(request, homes)) {
      for (const limit of request.limits) {
        // Real time may also run slower than group time, by the same drift.
        const liveMillis =
          groupWindowMillis(groupWindowMillis(limit.windowMillis, driftPpm), driftPpm) + slackMillis;
        // A reported grant was charged no later than its answer. A charge in doubt may come late.
        const resetNanos = isReported ? keyChanges.isResetFrom(limit.key, toNanos) : Infinity;
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
 * The intervals in which the request may have been charged, one for each possible charge. Each attempt may reserve
 * anew, also one that is denied in the end. If all its limits lie in one partition nothing is reserved, and one id is
 * charged once.
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

/**
 * When the charge is out of its window. Every fault that may have delayed it, or during which time stood still, makes
 * this later.
 */
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
