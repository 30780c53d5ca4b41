/**
 * Helpers for the tests of the checkers: runs those that need only the history, the faults, and the fates from the
 * logs.
 */
import { budgetsOf } from './checkers/budgets.ts';
import { checkCertificate } from './checkers/certificate.ts';
import { checkFalseDenials } from './checkers/false-denials.ts';
import { type Fates, NO_FATES } from './checkers/fates.ts';
import { checkLinearizability } from './checkers/linearizability.ts';
import { checkRealTime } from './checkers/real-time.ts';
import type { CheckResult } from './checkers/result.ts';
import type { Operation } from './history.ts';
import type { NemesisBand } from './nemesis-log.ts';
import { DRIFT_PPM } from './random-leaders.ts';

const HORIZON_MILLIS = 120_000;

export function checkAll(
  operations: readonly Operation[],
  bands: readonly NemesisBand[] = [],
  fates: Fates = NO_FATES,
): CheckResult[] {
  const budgets = budgetsOf(operations);
  const search = { driftPpm: DRIFT_PPM, bands, answersMax: 1_000, stepsMax: 100_000 };
  return [
    checkRealTime(budgets, bands),
    checkCertificate(budgets, { driftPpm: DRIFT_PPM, requestIdHorizonMillis: HORIZON_MILLIS, fates, bands }),
    checkLinearizability(budgets, { ...search, mode: 'strict' }),
    checkLinearizability(budgets, { ...search, mode: 'lenient' }),
    checkFalseDenials(budgets, { driftPpm: DRIFT_PPM, fates, bands, settleMillis: 100, slackMillis: 0 }),
  ];
}

/** The names of the checkers that found a violation. */
export function accusers(results: readonly CheckResult[]): string[] {
  return results.filter(({ status }) => status === 'violation').map(({ name }) => name);
}

export function violations(operations: readonly Operation[], fates?: Fates): string[] {
  return accusers(checkAll(operations, [], fates));
}

/** The findings of the certificate check. */
export function found(...operations: readonly Operation[]): string[] {
  return checkAll(operations).flatMap(({ name, findings }) => (name === 'certificate' ? findings : []));
}

/** A grant of a limit of 1 per 100 ms, decided at `at`, in milliseconds of both clocks. */
export function answer(at: number, more: Partial<Operation> = {}): Operation {
  return {
    process: at,
    user: 'ada',
    rule: 'default',
    node: 1,
    invokeNanos: at * 1e6,
    completeNanos: (at + 1) * 1e6,
    limit: 1,
    windowMillis: 100,
    cost: 1,
    timestampMillis: null,
    allowed: true,
    status: 200,
    requestId: `r${at}`,
    group: 0,
    index: at,
    position: null,
    term: 1,
    timeMillis: at,
    remaining: 0,
    class: 'ok',
    error: null,
    ...more,
  };
}
