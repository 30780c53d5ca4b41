/** Everything that is known of a run, put before all checkers: the verdict. It judges nothing itself. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { ClusterUnderTest } from './cluster-under-test.ts';
import { budgetsOf } from './checkers/budgets.ts';
import { checkCertificate } from './checkers/certificate.ts';
import { checkFalseDenials } from './checkers/false-denials.ts';
import { NO_FATES } from './checkers/fates.ts';
import { checkLinearizability } from './checkers/linearizability.ts';
import { checkLiveness } from './checkers/liveness.ts';
import { checkRealTime } from './checkers/real-time.ts';
import { type CheckResult, Findings } from './checkers/result.ts';
import type { Operation } from './history.ts';
import { encodeBand, type NemesisBand } from './nemesis-log.ts';

export interface Verdict {
  readonly isValid: boolean;
  readonly checks: readonly CheckResult[];
}

export interface Evidence {
  readonly directory: string;
  readonly cluster: ClusterUnderTest;
  readonly operations: readonly Operation[];
  readonly bands: readonly NemesisBand[];
  /** Why a nemesis could not undo what it had done. */
  readonly notHealed: string | undefined;
}

/** A loaded machine with few cores runs all nodes, the proxies and the clients. */
const SLACK_MILLIS = 1_500;
const RECOVERY_MILLIS_MAX = 15_000;
const SETTLE_MILLIS = 5_000;

export async function judge(evidence: Evidence): Promise<Verdict> {
  const { directory, cluster, operations, bands } = evidence;
  const { driftPpm, requestIdHorizonMillis } = {
    driftPpm: cluster.config.rules.clockDriftPpm,
    requestIdHorizonMillis: cluster.config.rules.requestIdHorizonMillis,
  };
  const budgets = budgetsOf(operations);
  const fates = NO_FATES;
  const checks = [
    checkRealTime(budgets),
    checkCertificate(budgets, { driftPpm, requestIdHorizonMillis, fates }),
    checkLinearizability(budgets, { driftPpm, mode: 'lenient', answersMax: 300, stepsMax: 200_000 }),
    checkFalseDenials(budgets, { driftPpm, fates, bands, settleMillis: SETTLE_MILLIS, slackMillis: 50 }),
    checkLiveness(operations, {
      bands,
      deadlineMillis: cluster.config.timing.requestDeadlineMillis,
      slackMillis: SLACK_MILLIS,
      recoveryMillisMax: RECOVERY_MILLIS_MAX,
    }),
    checkProcesses(evidence),
  ];
  const verdict = { isValid: checks.every(({ status }) => status !== 'violation'), checks };
  writeFileSync(join(directory, 'bands.jsonl'), bands.map((band) => `${encodeBand(band)}\n`).join(''));
  writeFileSync(join(directory, 'verdict.json'), `${JSON.stringify(verdict, undefined, 2)}\n`);
  return verdict;
}

/** No process ended that nobody had ended, and whatever was broken could be mended. */
function checkProcesses({ cluster, notHealed }: Evidence): CheckResult {
  const findings = new Findings('processes');
  findings.tally('exits', cluster.exits.length);
  for (const { id, code, signal } of cluster.unexpectedExits) {
    findings.add(`node ${id} ended by itself: ${signal ?? code}`);
  }
  if (notHealed !== undefined) findings.add(notHealed);
  return findings.result();
}
