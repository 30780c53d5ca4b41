/**
 * Checks that answers agree with each other. One request id has one answer. A refund stays refunded and returns what
 * was granted. No two requests have the same place in the log. Every reported limit belongs to the request, and all
 * limits in an answer come from one version of the rules.
 */
import type { Operation } from '../history.ts';
import type { Ask, JointHistory, LimitAsked, LimitReported, Receipt } from '../joint-history.ts';
import { type NemesisBand, overlaps } from '../nemesis-log.ts';
import { NO_JOINT } from './joint-limits.ts';
import { type JointGrant, type JointRequest, jointRequests } from './joint-requests.ts';
import { LimitsInForce } from './limits-in-force.ts';
import { type CheckResult, Findings, skipped } from './result.ts';

export interface JointAnswersOptions {
  readonly requestIdHorizonMillis: number;
  readonly driftPpm: number;
  /** Single requests. No other request may have their places in the log. */
  readonly history: readonly Operation[];
  readonly bands: readonly NemesisBand[];
  /** For this long after a fault a leader that was cut off may still believe that it leads. */
  readonly settleMillis: number;
}

const NANOS_PER_MILLI = 1e6;
const CONFLICT = 422;

export function checkJointAnswers(joint: JointHistory, options: JointAnswersOptions): CheckResult {
  if (joint.asks.length === 0) return skipped('joint-answers', NO_JOINT);
  const findings = new Findings('joint-answers');
  const horizonNanos = options.requestIdHorizonMillis * (1 - options.driftPpm / 1e6) * NANOS_PER_MILLI;
  const inForce = new LimitsInForce(joint.changes);
  const places = new Map<string, string>();
  for (const { group, index, position, user, requestId } of options.history)
    if (group !== null && index !== null && position !== null)
      places.set(`${group}/${index}/${position}`, `the single request of ${user}, '${requestId}'`);
  for (const request of jointRequests(joint)) {
    for (const ask of request.attempts) {
      findings.tally(ask.listener);
      checkReported(ask, request, { inForce, ...options }, findings);
      checkPlace(ask, places, findings);
    }
    findings.tally('refunds', request.refunds.length);
    const { grant } = request;
    if (grant === undefined) continue;
    const untilNanos = grant.invokeNanos + horizonNanos;
    checkRepeats(request, grant, untilNanos, findings);
    checkRefunds(request, grant, untilNanos, findings);
  }
  return findings.result();
}

/** While a grant is remembered, every attempt under its id gets the same answer. */
function checkRepeats(
  { attempts, givenBackFromNanos, requestId }: JointRequest,
  grant: JointGrant,
  untilNanos: number,
  findings: Findings,
): void {
  const receipts = attempts.flatMap(({ allowed, receipt, completeNanos }) =>
    allowed === true && receipt !== null && completeNanos <= untilNanos ? [receipt] : [],
  );
  const [first] = receipts;
  for (const other of receipts.slice(1)) {
    findings.tally('repeats');
    if (first !== undefined && !isSame(first, other))
      findings.add(`'${requestId}' was granted twice: ${placeOf(first)} and ${placeOf(other)}`);
  }
  for (const { allowed, status, invokeNanos, completeNanos, error } of attempts) {
    const isRemembered = invokeNanos > grant.completeNanos && completeNanos <= untilNanos;
    if (!isRemembered) continue;
    const mayBeGivenBack = completeNanos >= givenBackFromNanos;
    if (allowed === false) findings.add(`'${requestId}' was granted, and its retry was denied`);
    if (status === CONFLICT && !mayBeGivenBack)
      findings.add(`'${requestId}' was granted, and its retry was refused: ${error}`);
  }
}

/** A refund returns the granted rule and cost, stays refunded, and is found as long as the grant is remembered. */
function checkRefunds(
  { attempts, refunds, limits, cost, requestId }: JointRequest,
  grant: JointGrant,
  untilNanos: number,
  findings: Findings,
): void {
  const receipts = [...attempts, ...refunds.filter(({ refunded }) => refunded === true)].flatMap(
    ({ receipt, completeNanos }) => (receipt !== null && completeNanos <= untilNanos ? [receipt] : []),
  );
  const granted = grant.answered.receipt ?? receipts[0] ?? null;
  let backNanos = Infinity;
  for (const refund of refunds) {
    if (refund.completeNanos > untilNanos) continue;
    if (refund.refunded === false && refund.invokeNanos > grant.completeNanos)
      findings.add(`'${requestId}' was granted, and its refund found nothing`);
    if (refund.refunded !== true) continue;
    findings.tally('givenBack');
    backNanos = Math.min(backNanos, refund.completeNanos);
    if (refund.cost !== cost || !isOneOf(limits, refund.rule))
      findings.add(
        `the refund of '${requestId}' gave back ${refund.cost} under '${refund.rule}' instead of ${cost}`,
      );
    if (granted !== null && refund.receipt !== null && !isSame(granted, refund.receipt))
      findings.add(
        `the refund of '${requestId}' is of ${placeOf(refund.receipt)} instead of ${placeOf(granted)}`,
      );
  }
  for (const { allowed, invokeNanos, completeNanos } of attempts) {
    if (allowed === null || invokeNanos <= backNanos || completeNanos > untilNanos) continue;
    findings.add(`'${requestId}' was refunded, and then its retry was ${allowed ? 'granted' : 'denied'}`);
  }
}

interface ReportedOptions extends Pick<JointAnswersOptions, 'bands' | 'settleMillis'> {
  readonly inForce: LimitsInForce;
}

/** All limits that an answer reports belong to the request and come from one rule version. */
function checkReported(ask: Ask, request: JointRequest, options: ReportedOptions, findings: Findings): void {
  const { inForce } = options;
  const { allowed, reported, limits, requestId, cost } = ask;
  if (allowed === null || ask.blocked) return;
  if (reported.length === 0)
    findings.add(`'${requestId}' was ${allowed ? 'granted' : 'denied'} under no limit`);
  const isFirst = request.attempts[0] === ask;
  const from = request.attempts[0]?.invokeNanos ?? ask.invokeNanos;
  for (const { rule, remaining, limit } of reported) {
    if (!isOneOf(limits, rule)) findings.add(`'${requestId}' was answered with rule '${rule}'`);
    const { windowMillis = Infinity } = limits.find((asked) => asked.rule === rule) ?? {};
    // The answer to a settlement shows what remains after the refund of its estimate. The cost that it charged may have
    // left the window by then.
    const isOut = ask.settled && ask.completeNanos > from + windowMillis * 1e6;
    // A settled cost may exceed the limit. Then nothing remains.
    if (remaining < 0 || remaining > Math.max(0, limit - (allowed && !isOut ? cost : 0)))
      findings.add(`'${requestId}' was answered that ${remaining} of ${limit} remain under '${rule}'`);
  }
  const possible = inForce.possible(from, ask.completeNanos);
  // A retry gets what the first partition remembers, and the Redis protocol reports only the limit that binds. The node
  // repeats a settlement itself if the rules change meanwhile.
  const reportsAll = isFirst && ask.listener !== 'redis' && !(ask.settled && possible.length > 1);
  if (reportsAll && allowed && reported.length !== limits.length)
    findings.add(`'${requestId}' was granted under ${reported.length} of its ${limits.length} limits`);
  const known = allowed ? possible : inForce.possible(staleFrom(ask, from, options), ask.completeNanos);
  const isOf = (limits: readonly LimitReported[]): boolean =>
    known.some((change) => limits.every(({ rule, limit }) => change.limits[rule] === limit));
  // A retry may get a remembered grant together with what it reserved itself under newer rules. The node repeats a
  // settlement in all partitions if the rules change meanwhile.
  const isOfOne = isFirst && !ask.settled ? isOf(reported) : reported.every((each) => isOf([each]));
  if (reported.length > 1) findings.tally('severalReported');
  if (possible.length > 0 && !isOfOne) {
    const limitsReported = reported.map(({ rule, limit }) => `${rule} ${limit}`).join(', ');
    findings.add(
      `'${requestId}' was decided by limits that were never in force together then: ${limitsReported}`,
    );
  }
}

/**
 * A leader that is cut off keeps denying by the rules it knows, for as long as it believes that it leads. It grants
 * nothing.
 */
function staleFrom({ invokeNanos, completeNanos }: Ask, from: number, options: ReportedOptions): number {
  const settleNanos = options.settleMillis * NANOS_PER_MILLI;
  const faults = options.bands.filter((band) => overlaps(band, invokeNanos, completeNanos, settleNanos));
  return Math.min(from, ...faults.map(({ startNanos }) => startNanos));
}

function checkPlace(
  { allowed, receipt, requestId }: Ask,
  places: Map<string, string>,
  findings: Findings,
): void {
  if (receipt === null || receipt.position === null || allowed !== true) return;
  const { group, index, position } = receipt;
  const place = `${group}/${index}/${position}`;
  const owner = places.get(place) ?? `'${requestId}'`;
  places.set(place, owner);
  findings.tally('places');
  if (owner !== `'${requestId}'`)
    findings.add(`two requests at ${placeOf(receipt)}: ${owner} and '${requestId}'`);
}

function isOneOf(limits: readonly LimitAsked[], rule: string | null): boolean {
  return limits.some((known) => known.rule === rule);
}

function isSame(a: Receipt, b: Receipt): boolean {
  return placeOf(a) === placeOf(b) && a.term === b.term && a.timeMillis === b.timeMillis;
}

function placeOf({ group, index, position }: Receipt): string {
  return `partition ${group}, index ${index}, position ${position}`;
}
