/**
 * The certificate check. Every answer names its place in the log and its time, so the history brings the order that it
 * claims to be equivalent to. This check verifies the claim: the order respects real time, group time does not run
 * ahead of real time, and the model, asked in that order, gives every answer. It needs no search and takes O(n log n).
 */
import { gainedMillis } from '../gained-time.ts';
import type { Operation } from '../history.ts';
import { type Budget, type Grant, nameOf } from './budgets.ts';
import { nearEpochMillis } from './epochs.ts';
import type { Placement } from './fates.ts';
import { BudgetReplay, type CertificateOptions, describe } from './replay.ts';
import { type CheckResult, Findings, skipped } from './result.ts';

const NANOS_PER_MILLI = 1e6;
/** Stamps are rounded down to whole milliseconds. The rest covers the precision of doubles around 1e12. */
const ROUNDING_MILLIS = 1.001;

/** An answer and its receipt. */
interface Certified {
  readonly op: Operation;
  readonly isGrant: boolean;
  readonly index: number;
  /** Null if the answer does not report it, or if there is none. */
  readonly position: number | null;
  readonly term: number;
  readonly timeMillis: number;
  /**
   * The time is group time, not a caller's stamp. A denial may be held back behind a caller's stamp without having one
   * of its own.
   */
  readonly isGroupTime: boolean;
  /** The answer was decided in this interval. */
  readonly invokeNanos: number;
  readonly completeNanos: number;
}

export function checkCertificate(
  budgets: readonly Budget[],
  asked: Omit<CertificateOptions, 'nearEpochMillis'>,
): CheckResult {
  const options = { ...asked, nearEpochMillis: nearEpochMillis(budgets) };
  const findings = new Findings('certificate');
  const groups = new Map<number, Certified[]>();
  let answers = 0;
  let certified = 0;
  for (const budget of budgets) {
    const own = certifiedOf(budget, groups);
    answers += budget.grants.length + budget.denials.length;
    certified += own;
    if (own === 0) continue;
    checkOneGroup(budget, findings);
    checkRetries(budget, options.requestIdHorizonMillis, findings);
    checkMemory(budget, options, findings);
    new BudgetReplay(budget, options, findings).run();
  }
  if (certified === 0) return skipped('certificate', 'no answer of this history has a receipt');
  if (certified < answers) findings.add(`${answers - certified} answers without a receipt`);
  for (const [group, receipts] of groups) {
    checkLogOrder(group, receipts, findings);
    checkOwnReceipts(group, receipts, findings);
    checkRealTimeOrder(group, receipts, findings);
    checkGroupTime(group, receipts, options, findings);
  }
  findings.tally('receipts', certified);
  findings.tally('groups', groups.size);
  return findings.result();
}

function certifiedOf(budget: Budget, groups: Map<number, Certified[]>): number {
  let count = 0;
  const add = (op: Operation, isGrant: boolean, invokeNanos: number, completeNanos: number): void => {
    const { group, index, position, term, timeMillis } = op;
    if (group === null || index === null || term === null || timeMillis === null) return;
    count += 1;
    let receipts = groups.get(group);
    if (receipts === undefined) groups.set(group, (receipts = []));
    const isGroupTime = op.timestampMillis === null && (isGrant || !budget.hasEventTimes);
    receipts.push({
      op,
      isGrant,
      isGroupTime,
      index,
      position,
      term,
      timeMillis,
      invokeNanos,
      completeNanos,
    });
  };
  for (const { op, invokeNanos, completeNanos } of budget.grants) add(op, true, invokeNanos, completeNanos);
  for (const op of budget.denials) add(op, false, op.invokeNanos, op.completeNanos ?? Infinity);
  return count;
}

function checkOneGroup(budget: Budget, findings: Findings): void {
  const answers = [...budget.grants.map(({ op }) => op), ...budget.denials];
  const groups = new Set(answers.map(({ group }) => group).filter((group) => group !== null));
  if (groups.size > 1) findings.add(`${nameOf(budget)} was decided by groups ${[...groups].join(', ')}`);
}

/** Retries of one request id get one answer and are charged once. */
function checkRetries({ grants }: Budget, horizonMillis: number, findings: Findings): void {
  const earlier = new Map<string, Grant[]>();
  for (const grant of grants) {
    const { op } = grant;
    for (const copy of grant.copies) {
      findings.tally('retries');
      if (copy.remaining !== op.remaining)
        findings.add(
          `a retry was answered that ${copy.remaining} remain instead of ${op.remaining}: ${describe(op)}`,
        );
    }
    if (op.requestId === null) continue;
    const same = earlier.get(op.requestId) ?? [];
    for (const other of same) {
      if (apartMillis(other, grant) <= horizonMillis) {
        findings.add(`charged twice: ${describe(other.op)} and index ${op.index}, term ${op.term}`);
      }
    }
    earlier.set(op.requestId, [...same, grant]);
  }
}

/** A grant is remembered by its request id, whether a client saw it or only the log shows it. */
function checkMemory(
  { operations, grants, denials, hasEventTimes }: Budget,
  { fates, requestIdHorizonMillis, driftPpm }: CertificateOptions,
  findings: Findings,
): void {
  const unreported = new Map<string, Placement[]>();
  const costs = new Map<string, number>();
  for (const op of operations) {
    if (op.requestId === null) continue;
    const fate = fates.get(op);
    if (fate?.kind === 'granted') unreported.set(op.requestId, [...fate.at]);
    if (fate?.kind === 'granted' || op.allowed === true) costs.set(op.requestId, op.cost);
  }
  const isWithinHorizon = (at: { readonly timeMillis: number | null }, op: Operation): boolean =>
    Math.abs((op.timeMillis ?? 0) - (at.timeMillis ?? 0)) <= requestIdHorizonMillis;
  const grantsById = new Map<string, Grant[]>();
  for (const grant of grants) {
    const { op } = grant;
    if (op.requestId === null) continue;
    grantsById.set(op.requestId, [...(grantsById.get(op.requestId) ?? []), grant]);
    if (hasEventTimes) continue;
    for (const at of unreported.get(op.requestId) ?? []) {
      if (at.index !== op.index && isWithinHorizon(at, op))
        findings.add(`charged twice: at index ${at.index} without an answer, and again: ${describe(op)}`);
    }
  }
  const realHorizonNanos = requestIdHorizonMillis * (1 - driftPpm / 1e6) * NANOS_PER_MILLI;
  for (const op of denials) {
    const id = op.requestId ?? '';
    const own = grantsById.get(id) ?? [];
    // Callers' timestamps say nothing about the horizon, so real time is used for them.
    const isForgotten = ({ invokeNanos, completeNanos }: Grant): boolean =>
      completeNanos >= op.invokeNanos || (op.completeNanos ?? Infinity) - invokeNanos >= realHorizonNanos;
    const at = hasEventTimes
      ? own.find((grant) => !isForgotten(grant))?.op
      : [...own.map((grant) => grant.op), ...(unreported.get(id) ?? [])].find(
          // A leader that had not applied the grant yet could not remember it.
          (place) =>
            isWithinHorizon(place, op) && (isBefore(place, op) ?? costs.get(op.requestId ?? '') === op.cost),
        );
    if (own.length > 0) findings.tally('deniedRepetitions');
    if (at !== undefined)
      findings.add(`granted at index ${at.index}, and yet its retry was answered: ${describe(op)}`);
  }
}

interface LogPlace {
  readonly index: number | null;
  readonly position: number | null;
}

/**
 * Whether `grant` was made before `denial`. Undefined: they are in one entry and their order in it is unknown. A
 * request that did not fit before the grant does not fit after it either.
 */
function isBefore(grant: LogPlace, denial: LogPlace): boolean | undefined {
  const [granted, denied] = [grant.index ?? 0, denial.index ?? 0];
  if (granted !== denied) return granted < denied;
  if (grant.position === null) return undefined;
  // A denial without a position was read after the whole entry.
  return denial.position === null || grant.position < denial.position;
}

/** The two are at most as far apart as they are in group time. */
function apartMillis(a: Grant, b: Grant): number {
  const isGroupTime = a.op.timestampMillis === null && b.op.timestampMillis === null;
  if (isGroupTime) return Math.abs((a.op.timeMillis ?? 0) - (b.op.timeMillis ?? 0));
  const nanos = Math.max(a.completeNanos, b.completeNanos) - Math.min(a.invokeNanos, b.invokeNanos);
  return nanos / NANOS_PER_MILLI;
}

/** Along the log neither terms nor group times decrease, and all answers of one entry have the same term and time. */
function checkLogOrder(group: number, receipts: Certified[], findings: Findings): void {
  receipts.sort((a, b) => a.index - b.index || Number(b.isGrant) - Number(a.isGrant));
  let before: Certified | undefined;
  let newest: Certified | undefined;
  for (const receipt of receipts) {
    if (before !== undefined) {
      const isBroken =
        receipt.index === before.index ? receipt.term !== before.term : receipt.term < before.term;
      if (isBroken) findings.add(`group ${group}: two terms cross: ${pair(before, receipt)}`);
    }
    before = receipt;
    if (!receipt.isGroupTime) continue;
    if (newest !== undefined) {
      const isSameEntry = receipt.isGrant && receipt.index === newest.index;
      const isBroken = isSameEntry
        ? receipt.timeMillis !== newest.timeMillis
        : receipt.timeMillis < newest.timeMillis;
      if (isBroken) findings.add(`group ${group}: time decreases along the log: ${pair(newest, receipt)}`);
    }
    // A denial has the time of its request. The next entry may be stamped by a leader whose time lags behind that.
    if (receipt.isGrant) newest = receipt;
  }
}

/** Each decision has its own place in its entry, so each grant has its own receipt. */
function checkOwnReceipts(group: number, receipts: readonly Certified[], findings: Findings): void {
  const owners = new Map<string, Certified>();
  for (const receipt of receipts) {
    const { index, position } = receipt;
    if (position === null) continue;
    findings.tally('places');
    const place = `${index}/${position}`;
    const owner = owners.get(place);
    owners.set(place, receipt);
    if (owner === undefined || isSameRequest(owner, receipt)) continue;
    findings.add(`group ${group}: two requests at place ${position} of one entry: ${pair(owner, receipt)}`);
  }
}

/** A request without an id is asked only once. */
function isSameRequest({ op: a }: Certified, { op: b }: Certified): boolean {
  return a.requestId !== null && a.requestId === b.requestId && a.user === b.user;
}

/**
 * An answer that arrived before a request was made must come before it in the log. This holds for grants, which are
 * entries. A denial is read from the state its leader had applied, which may be old: such denials are only counted.
 */
function checkRealTimeOrder(group: number, receipts: readonly Certified[], findings: Findings): void {
  const byCompletion = [...receipts].sort((a, b) => a.completeNanos - b.completeNanos);
  const byInvocation = [...receipts].sort((a, b) => a.invokeNanos - b.invokeNanos);
  let next = 0;
  let highest: Certified | undefined;
  for (const receipt of byInvocation) {
    for (; next < byCompletion.length; next += 1) {
      const done = byCompletion[next];
      if (done === undefined || done.completeNanos >= receipt.invokeNanos) break;
      if (highest === undefined || done.index > highest.index) highest = done;
    }
    if (highest === undefined) continue;
    if (!receipt.isGrant) {
      if (receipt.index < highest.index) findings.tally('staleDenials');
    } else if (highest.index >= receipt.index) {
      findings.add(`group ${group}: answered before it was requested: ${pair(highest, receipt)}`);
    }
  }
}

/**
 * Group time never runs faster than real time, except for drift and rounding. Client times suffice for this check: an
 * entry is stamped after its request was made and before it was answered.
 */
function checkGroupTime(
  group: number,
  byIndex: readonly Certified[],
  { driftPpm, bands }: CertificateOptions,
  findings: Findings,
): void {
  const rate = (1 + driftPpm / 1_000_000) / NANOS_PER_MILLI;
  const passed = (nanos: number): number => nanos * rate + gainedMillis(bands, nanos);
  let earliest: Certified | undefined;
  let earliestLead = Infinity;
  for (const receipt of byIndex) {
    if (!receipt.isGroupTime) continue;
    const { invokeNanos, completeNanos, timeMillis, isGrant } = receipt;
    const lead = timeMillis - passed(completeNanos);
    if (earliest !== undefined && lead - earliestLead > ROUNDING_MILLIS) {
      const ahead = (lead - earliestLead).toFixed(1);
      findings.add(`group ${group}: group time outran real time by ${ahead} ms: ${pair(earliest, receipt)}`);
    }
    const ownLead = timeMillis - passed(invokeNanos);
    if (isGrant && ownLead < earliestLead) {
      earliest = receipt;
      earliestLead = ownLead;
    }
  }
}

function pair(a: Certified, b: Certified): string {
  return `${describe(a.op)}, term ${a.term}; then ${describe(b.op)}, term ${b.term}`;
}
