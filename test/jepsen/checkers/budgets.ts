/**
 * Splits a history into budgets, one per user and rule: each has its own limit. Splits the attempts of each budget into
 * distinct grants, denials and unknown outcomes. Retries of one request id are one grant. Judges nothing.
 */
import type { Operation } from '../history.ts';
import type { Fates } from './fates.ts';

/** One grant, even if several attempts got it as their answer. */
export interface Grant {
  /** The first answer that reported it. */
  readonly op: Operation;
  /** Every other answer with the same receipt. */
  readonly copies: Operation[];
  /** The grant was made in this interval: no attempt was made before it, and this answer already knew of the grant. */
  invokeNanos: number;
  completeNanos: number;
}

/**
 * A request that may have been charged without a client seeing it. Either no attempt of it got a grant as its answer,
 * and at least one got no answer. Or one attempt was answered from memory while another node had the request too, and
 * that node may have processed it after the answer was forgotten.
 */
export interface Unknown {
  readonly op: Operation;
  readonly invokeNanos: number;
}

export interface Budget {
  readonly user: string;
  readonly rule: string;
  readonly limit: number;
  readonly windowMillis: number;
  /** Ordered by group, index and position of their receipts. */
  readonly grants: readonly Grant[];
  readonly denials: readonly Operation[];
  /** Ordered by invocation. */
  readonly unknowns: readonly Unknown[];
  readonly operations: readonly Operation[];
  /** Some requests carried timestamps of their callers. */
  readonly hasEventTimes: boolean;
}

export function nameOf({ user, rule }: { readonly user: string; readonly rule: string }): string {
  return `user '${user}' under rule '${rule}'`;
}

export interface IdHorizon {
  /** How long the cluster remembers an answer under its request id. */
  readonly requestIdHorizonMillis: number;
  /** An attempt may take effect this long after it was made, for example while its node was paused. */
  readonly lateMillis: number;
}

/** Never forgets: a request id is never used for a second request. */
const FOREVER: IdHorizon = { requestIdHorizonMillis: Infinity, lateMillis: 0 };
const NANOS_PER_MILLI = 1e6;

export function budgetsOf(history: readonly Operation[], horizon = FOREVER): Budget[] {
  const byRule = new Map<string, Map<string, Operation[]>>();
  for (const op of history) {
    let byUser = byRule.get(op.rule);
    if (byUser === undefined) byRule.set(op.rule, (byUser = new Map<string, Operation[]>()));
    const operations = byUser.get(op.user);
    if (operations === undefined) byUser.set(op.user, [op]);
    else operations.push(op);
  }
  return [...byRule.values()].flatMap((byUser) => [...byUser.values()].map((own) => budgetOf(own, horizon)));
}

function budgetOf(operations: readonly Operation[], horizon: IdHorizon): Budget {
  const firstAttempt = new Map<string, number>();
  for (const { requestId, invokeNanos, class: outcome } of operations) {
    if (requestId === null || outcome === 'fail') continue;
    firstAttempt.set(requestId, Math.min(firstAttempt.get(requestId) ?? Infinity, invokeNanos));
  }
  const grants: Grant[] = [];
  const grantOf = new Map<string, Grant[]>();
  const denials: Operation[] = [];
  let limit = 0;
  let windowMillis = 0;
  let hasEventTimes = false;
  for (const op of operations) {
    limit = Math.max(limit, op.limit);
    windowMillis = Math.max(windowMillis, op.windowMillis);
    if (op.timestampMillis !== null) hasEventTimes = true;
    if (op.class !== 'ok' || op.completeNanos === null) continue;
    if (op.allowed !== true) {
      denials.push(op);
      continue;
    }
    const { requestId, completeNanos } = op;
    const known = requestId === null ? undefined : grantOf.get(requestId);
    const same = known?.find(({ op: first }) => isSameReceipt(first, op));
    if (same !== undefined) {
      same.copies.push(op);
      same.completeNanos = Math.min(same.completeNanos, completeNanos);
      continue;
    }
    const invokeNanos = requestId === null ? op.invokeNanos : (firstAttempt.get(requestId) ?? op.invokeNanos);
    const grant = { op, copies: [], invokeNanos, completeNanos };
    grants.push(grant);
    if (known !== undefined) known.push(grant);
    else if (requestId !== null) grantOf.set(requestId, [grant]);
  }
  grants.sort(
    (a, b) =>
      (a.op.group ?? 0) - (b.op.group ?? 0) ||
      (a.op.index ?? 0) - (b.op.index ?? 0) ||
      (a.op.position ?? 0) - (b.op.position ?? 0),
  );
  const first = operations[0];
  return {
    user: first?.user ?? '',
    rule: first?.rule ?? '',
    limit,
    windowMillis,
    grants,
    denials,
    unknowns: unknownsOf(operations, grantOf, firstAttempt, horizon),
    operations,
    hasEventTimes,
  };
}

/** Removes the unknown outcomes that the logs prove were not charged. */
export function settledBy(fates: Fates, budgets: readonly Budget[]): Budget[] {
  return budgets.map((budget) => ({
    ...budget,
    unknowns: budget.unknowns.filter(({ op }) => fates.get(op)?.kind !== 'uncharged'),
  }));
}

export function isSameReceipt(a: Operation, b: Operation): boolean {
  return (
    a.group === b.group &&
    a.index === b.index &&
    a.position === b.position &&
    a.term === b.term &&
    a.timeMillis === b.timeMillis
  );
}

/**
 * Attempts under one id are one request until its answer is forgotten. An attempt that takes effect later is another
 * request and may be charged again.
 */
function unknownsOf(
  operations: readonly Operation[],
  grantOf: ReadonlyMap<string, readonly Grant[]>,
  firstAttempt: ReadonlyMap<string, number>,
  { requestIdHorizonMillis, lateMillis }: IdHorizon,
): Unknown[] {
  const unknowns: Unknown[] = [];
  const seen = new Set<string>();
  const horizonNanos = requestIdHorizonMillis * NANOS_PER_MILLI;
  const lateNanos = lateMillis * NANOS_PER_MILLI;
  for (const op of operations) {
    const { requestId, invokeNanos } = op;
    if (op.class === 'ok' && op.allowed === true && requestId !== null) {
      const made = grantOf.get(requestId)?.find((grant) => isSameReceipt(grant.op, op));
      const isRepetition = made !== undefined && made.op !== op;
      if (isRepetition && invokeNanos + lateNanos - made.invokeNanos > horizonNanos)
        unknowns.push({ op, invokeNanos });
    }
    if (op.class !== 'info') continue;
    const first = requestId === null ? undefined : firstAttempt.get(requestId);
    if (requestId === null || first === undefined) {
      unknowns.push({ op, invokeNanos });
      continue;
    }
    const isWithinHorizon = (completeNanos: number): boolean =>
      Math.max(invokeNanos + lateNanos, completeNanos) - first <= horizonNanos;
    // Both attempts were made while the first one was remembered.
    if (grantOf.get(requestId)?.some(({ completeNanos }) => isWithinHorizon(completeNanos))) continue;
    const isFirst = isWithinHorizon(invokeNanos);
    if (isFirst && seen.has(requestId)) continue;
    if (isFirst) seen.add(requestId);
    unknowns.push({ op, invokeNanos: isFirst ? first : invokeNanos });
  }
  return unknowns.sort((a, b) => a.invokeNanos - b.invokeNanos);
}
