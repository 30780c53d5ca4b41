/** Runs every checker on the recordings of a run, and combines the results into one object. */
import type { GroupId } from '../../raft/types.ts';
import type { Backup } from './backup-history.ts';
import { checkBackups } from './checkers/backups.ts';
import { checkBackupsTaken } from './checkers/backups-taken.ts';
import { type Budget, budgetsOf, settledBy } from './checkers/budgets.ts';
import { checkCertificate } from './checkers/certificate.ts';
import { checkFalseDenials } from './checkers/false-denials.ts';
import { type Fates, NO_FATES } from './checkers/fates.ts';
import { checkGraceful } from './checkers/graceful.ts';
import { checkJointAnswers } from './checkers/joint-answers.ts';
import { checkJointDenials } from './checkers/joint-denials.ts';
import { checkJointLimits } from './checkers/joint-limits.ts';
import { checkJointReceipts } from './checkers/joint-receipts.ts';
import { checkLinearizability } from './checkers/linearizability.ts';
import { checkLiveness, recoveries, type Recovery } from './checkers/liveness.ts';
import { checkLogAgreement } from './checkers/log-agreement.ts';
import { checkLogs, type NodeExit, type NodeLog } from './checkers/logs.ts';
import { checkRealTime } from './checkers/real-time.ts';
import { checkRefusals } from './checkers/refusals.ts';
import { checkRestored } from './checkers/restored.ts';
import { type CheckResult, skipped } from './checkers/result.ts';
import { checkSnapshots } from './checkers/snapshots.ts';
import { compareStores } from './compare-stores.ts';
import { type Gap, unavailabilityGaps } from './gaps.ts';
import { type GroupStates, statesAt, wantedBy } from './group-states.ts';
import type { Operation } from './history.ts';
import { attemptsOf, type JointHistory } from './joint-history.ts';
import { readLogs } from './log-entries.ts';
import type { NemesisBand } from './nemesis-log.ts';
import type { Restoration } from './restored-cluster.ts';
import { checkMachine } from './slow-machine.ts';
import { openStoppedNodes } from './stopped-nodes.ts';

export interface Settings {
  /** The drift in the rules that the cluster ran with. */
  readonly driftPpm: number;
  readonly requestIdHorizonMillis: number;
  /** An attempt may take effect this long after it was made, for example while its node was paused. */
  readonly lateMillis: number;
  /** The deadline of one request. `slackMillis` is the time that a busy machine may add. */
  readonly deadlineMillis: number;
  readonly slackMillis: number;
  /** The time after a fault until the first grant, and until every request must be decided. */
  readonly recoveryMillisMax: number;
  /** The time after a fault, plus a window, after which no denial may be wrong. */
  readonly settleMillis: number;
  /** How much group time a planned change of leaders may lose. */
  readonly leaderChangeMillis: number;
  /** Users with more answers are left to the certificate check. */
  readonly searchAnswersMax: number;
  readonly searchStepsMax: number;
  /** Shorter gaps without a decision are not reported. */
  readonly gapMillisMin: number;
  /** The nodes were configured to take snapshots often. */
  readonly areSnapshotsExpected: boolean;
}

export const SETTINGS_DEFAULTS: Settings = {
  driftPpm: 500,
  requestIdHorizonMillis: 120_000,
  lateMillis: 11_000,
  deadlineMillis: 1_000,
  slackMillis: 1_000,
  recoveryMillisMax: 10_000,
  settleMillis: 10_000,
  leaderChangeMillis: 20,
  searchAnswersMax: 500,
  searchStepsMax: 200_000,
  gapMillisMin: 250,
  areSnapshotsExpected: false,
};

export interface Run {
  readonly history: readonly Operation[];
  readonly joint: JointHistory;
  readonly backups: readonly Backup[];
  /** The restoration of the last backup, with its answers. Undefined: there was none. */
  readonly restoration: Restoration | undefined;
  readonly bands: readonly NemesisBand[];
  readonly logs: readonly NodeLog[];
  readonly exits: readonly NodeExit[];
  /** Lines of the node logs that the nemeses provoked. */
  readonly expectedLogLines: readonly RegExp[];
  /** The cluster's directory, if all of its nodes have stopped. */
  readonly clusterDirectory: string | undefined;
  /** The log entries that the nodes deleted, if they were archived. */
  readonly archiveDirectory: string | undefined;
}

export interface Verdict {
  /** `unknown`: no violation was found, but not everything could be decided. */
  readonly verdict: 'ok' | 'violation' | 'unknown';
  readonly operations: Readonly<Record<'total' | 'granted' | 'denied' | 'failed' | 'unknown', number>>;
  readonly checks: readonly CheckResult[];
  readonly recoveries: readonly Recovery[];
  readonly gaps: readonly Gap[];
  readonly settings: Settings;
}

export async function judge(run: Run, settings: Settings = SETTINGS_DEFAULTS): Promise<Verdict> {
  const { history, bands } = run;
  const { driftPpm, requestIdHorizonMillis } = settings;
  const asked = budgetsOf(history, settings);
  const logged = await judgeLogs(run, asked, settings);
  const { fates, states } = logged;
  const budgets = settledBy(fates, asked);
  const checks: CheckResult[] = [checkRealTime(asked, bands), ...logged.checks];
  checks.push(checkCertificate(budgets, { driftPpm, requestIdHorizonMillis, fates, bands }));
  const { searchAnswersMax: answersMax, searchStepsMax: stepsMax } = settings;
  for (const mode of ['lenient', 'strict'] as const) {
    checks.push(checkLinearizability(budgets, { driftPpm, bands, mode, answersMax, stepsMax }));
  }
  const { settleMillis, leaderChangeMillis: slackMillis } = settings;
  const { joint } = run;
  checks.push(
    checkJointLimits(joint, bands),
    checkJointReceipts(joint, { driftPpm }),
    checkJointAnswers(joint, { driftPpm, requestIdHorizonMillis, history, bands, settleMillis }),
    checkJointDenials(joint, { driftPpm, bands, settleMillis, slackMillis }),
  );
  checks.push(checkFalseDenials(budgets, { driftPpm, fates, bands, settleMillis, slackMillis }));
  checks.push(
    checkLiveness([...history, ...attemptsOf(joint)], { ...settings, bands }),
    checkRefusals(history),
    checkGraceful(history, bands),
  );
  const { backups, restoration } = run;
  checks.push(
    checkBackups(backups, { history, joint, states }),
    checkBackupsTaken(backups, { bands, settleMillis: settings.recoveryMillisMax }),
    checkRestored(restoration, { history, joint, backups }),
  );
  checks.push(checkMachine(history, bands));
  checks.push(
    run.logs.length === 0 && run.exits.length === 0
      ? skipped('logs', 'no logs of nodes')
      : await checkLogs(run.logs, { exits: run.exits, bands, expected: run.expectedLogLines }),
  );
  const kinds = bands.map(({ kind }) => kind);
  checks.push(await checkSnapshots(run.logs, { isExpected: settings.areSnapshotsExpected, kinds }));
  const has = (status: CheckResult['status']): boolean => checks.some((check) => check.status === status);
  return {
    verdict: has('violation') ? 'violation' : has('unknown') ? 'unknown' : 'ok',
    operations: countOperations(history),
    checks,
    recoveries: recoveries(history, bands),
    gaps: unavailabilityGaps(history, settings.gapMillisMin),
    settings,
  };
}

/** The evidence from the databases of the stopped nodes, both as results and as input for other checkers. */
interface Logged {
  readonly checks: readonly CheckResult[];
  readonly fates: Fates;
  readonly states: ReadonlyMap<GroupId, GroupStates> | undefined;
}

async function judgeLogs(
  { clusterDirectory, archiveDirectory, backups }: Run,
  budgets: readonly Budget[],
  { requestIdHorizonMillis }: Settings,
): Promise<Logged> {
  if (clusterDirectory === undefined) {
    const why = 'no databases of stopped nodes';
    return {
      checks: [skipped('stores', why), skipped('log-agreement', why)],
      fates: NO_FATES,
      states: undefined,
    };
  }
  const nodes = await openStoppedNodes(clusterDirectory, archiveDirectory);
  try {
    const stores = await compareStores(nodes);
    const { replicas } = nodes.config;
    const agreed = checkLogAgreement(budgets, await readLogs(nodes), { requestIdHorizonMillis, replicas });
    const states = await statesAt(nodes, wantedBy(backups));
    return { checks: [stores, agreed.result], fates: agreed.fates, states };
  } finally {
    await nodes.close();
  }
}

function countOperations(history: readonly Operation[]): Verdict['operations'] {
  const counts = { total: history.length, granted: 0, denied: 0, failed: 0, unknown: 0 };
  for (const { class: outcome, allowed } of history) {
    if (outcome === 'fail') counts.failed += 1;
    else if (outcome === 'info') counts.unknown += 1;
    else if (allowed === true) counts.granted += 1;
    else counts.denied += 1;
  }
  return counts;
}

/** One line for each check. */
export function verdictLines({ verdict, operations, checks }: Verdict): string[] {
  const counted = Object.entries(operations).map(([what, count]) => `${count} ${what}`);
  return [
    `${verdict}: ${counted.join(', ')}`,
    ...checks.flatMap(({ name, status, violations, findings, counts, note }) => {
      const numbers = Object.entries(counts).map(([what, count]) => `${what} ${Math.round(count)}`);
      const details = [...numbers, ...(note === undefined ? [] : [note])].join(', ');
      const head = `  ${name}: ${status}${violations > 0 ? ` (${violations})` : ''}${details === '' ? '' : `; ${details}`}`;
      return [head, ...findings.map((finding) => `    ${finding}`)];
    }),
  ];
}
