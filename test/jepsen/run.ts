/**
 * One run: a cluster of real processes with clients, first without faults, then with nemeses, then without faults
 * again. Afterwards everything that was recorded is judged. The run leaves a folder with the history, the logs and the
 * verdict.
 */
import { cpSync, mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import type { RandomBelow } from '../../raft/core-state.ts';
import { seeded } from '../raft/seeded.ts';
import { BackupClient } from './backup-client.ts';
import { cleanUpAfterKilled } from './killed-runs.ts';
import { ClusterUnderTest } from './cluster-under-test.ts';
import { writeCluster } from '../../src/config/cluster-directory.ts';
import type { CheckResult } from './checkers/result.ts';
import type { NodeAddress } from '../../src/api/node-address.ts';
import { HistoryWriter } from './history-file.ts';
import { JointWorkload, type JointTarget } from './joint-workload.ts';
import { createContext, NEMESES, usableNemeses } from './nemesis/all.ts';
import { runMix } from './nemesis/mix.ts';
import type { Nemesis, NemesisContext } from './nemesis/nemesis.ts';
import { bandsOf, complaintsOfStrangers } from './nemesis/bands.ts';
import { encodeBand, type NemesisBand } from './nemesis-log.ts';
import { checkProcesses, type Usage, usageOf } from './processes.ts';
import {
  ARCHIVE_FOLDER,
  BACKUPS_FOLDER,
  COMMAND_FILE,
  HISTORY_FILE,
  judgeInto,
  LOGS_FOLDER,
  NEMESIS_FILE,
  readRun,
  RESTORED_FILE,
  RESTORED_LOGS_FOLDER,
  settingsOf,
} from './run-folder.ts';
import { restoreLast } from './restore-last.ts';
import { SlowMachineWatch } from './slow-machine.ts';
import { type Summary, summaryOf } from './summary.ts';
import type { Verdict } from './verdict.ts';
import { nowNanos } from './http-attempt.ts';
import { Workload, WORKLOAD_RULES } from './workload.ts';

export interface RunOptions {
  readonly nodes: number;
  readonly millis: number;
  /** Names of nemeses or of families. Empty: no faults. */
  readonly nemeses: readonly string[];
  readonly seed: number;
  /** The folder for all files. It is created if necessary. */
  readonly directory: string;
  readonly print: (line: string) => void;
  /** A bug to put into every node: see mutants.ts. */
  readonly mutant?: string;
  /**
   * Nemeses with lasting faults. After a quarter of the time only these run, so that processes which no other fault
   * ends grow old.
   */
  readonly lasting?: readonly string[];
  /** Starts with the clients and stops with them. */
  readonly watch?: (cluster: ClusterUnderTest) => RunWatch;
}

export interface RunWatch {
  readonly stop: () => Promise<void>;
}

/** Whether the cluster kept its promises. `undecided`: no violation was found, but not everything could be judged. */
export type Outcome = 'kept' | 'broken' | 'undecided';

export interface RunResult {
  readonly verdict: Verdict;
  /** The run's own findings: processes that ended by themselves, and faults that could not be undone. */
  readonly processes: CheckResult;
  readonly outcome: Outcome;
  readonly summary: Summary;
}

/** The time before the first fault and after the last, in which everything must work. */
const QUIET_MILLIS = 8_000;
const WARM_UP_MILLIS = 2_000;
/** The fraction of the time before the lasting faults. */
const FIRST_FRACTION = 0.25;
/** Shorter than a run, so that nodes forget answers during the run. */
const REQUEST_ID_HORIZON_MILLIS = 15_000;
const SPARES = 12;
/** A backup syncs two dozen times, possibly on the disk of the nodes, so there is a pause between backups. */
const BACKUP_PAUSE_MILLIS_MAX = 3_000;
/** Each backup is replayed afterwards, so a long run takes fewer. */
const LASTING_BACKUP_PAUSE_MILLIS_MAX = 60_000;
const EVENTS_FILE = 'nemesis-events.jsonl';
const CLUSTER_FOLDER = 'cluster';
const SUMMARY_FILE = 'summary.json';
/** Log lines of a node whose disk fails, which some nemeses cause. */
const DISK_COMPLAINTS = [
  /StoreFailedError|RolledBackError|StoreDamagedError|ENOSPC|EIO|No space|Input\/output/,
];

const DAY_MILLIS = 86_400_000;
/** Allowances for a loaded machine with few cores that runs all nodes, the proxies and the clients. */
const MACHINE = {
  slackMillis: 1_500,
  // Two elections, a reconnect, and the deadline of a request.
  recoveryMillisMax: 4_000,
  settleMillis: 4_000,
  leaderChangeMillis: 50,
};

/** Families under the names that a user would try. */
const ALIASES: Readonly<Record<string, (nemesis: Nemesis) => boolean>> = {
  kill: ({ family, name }) => family === 'process' && /kill|restart/.test(name),
  pause: ({ family, name }) => family === 'process' && /pause|stall/.test(name),
  partition: ({ name }) => name.startsWith('partition'),
};

/**
 * The nemeses for `names`.
 *
 * @throws RangeError for an unknown name
 */
export function nemesesOf(names: readonly string[]): Nemesis[] {
  const chosen = new Set<Nemesis>();
  for (const name of names) {
    const isMeant =
      ALIASES[name] ??
      ((nemesis: Nemesis) =>
        nemesis.name === name ||
        (nemesis.family === name && nemesis.isBeyondPromise !== true && nemesis.isAlone !== true));
    const meant = NEMESES.filter(isMeant);
    if (meant.length === 0) {
      const known = [...Object.keys(ALIASES), ...new Set(NEMESES.map(({ family }) => family))];
      throw new RangeError(
        `there is no nemesis '${name}'; families: ${known.join(', ')}; ` +
          `single ones: ${NEMESES.map((each) => each.name).join(', ')}`,
      );
    }
    for (const nemesis of meant) chosen.add(nemesis);
  }
  return [...chosen];
}

export async function runOnce(options: RunOptions): Promise<RunResult> {
  const { nodes, seed, directory, print } = options;
  emptyFolder(directory);
  writeFileSync(join(directory, COMMAND_FILE), `${commandOf(options)}\n`);
  for (const line of cleanUpAfterKilled()) print(line);
  const random = seeded(seed);
  const nemeses = usableNemeses(nemesesOf(options.nemeses), print);
  const cluster = await ClusterUnderTest.create({
    nodes,
    rules: WORKLOAD_RULES,
    requestIdHorizonMillis: REQUEST_ID_HORIZON_MILLIS,
    random: seeded(random(2 ** 31 - 1)),
    spares: SPARES,
    ...(options.mutant !== undefined && { mutant: options.mutant }),
  });
  const stopping = new AbortController();
  const onSignal = (): void => stopping.abort();
  process.once('SIGINT', onSignal);
  try {
    await cluster.startAll();
    await cluster.ready();
    const seen = await liveThrough({ cluster, nemeses, random, stopping, options });
    await collect(cluster, directory, seen.bands);
    await restoreLast({ cluster, folder: directory, mutant: options.mutant });
    return await judge(cluster, seen, options);
  } finally {
    process.off('SIGINT', onSignal);
    await cluster.dispose();
  }
}

/** Files of an earlier run in this folder would be judged together with this one. */
function emptyFolder(directory: string): void {
  const folders = [CLUSTER_FOLDER, LOGS_FOLDER, ARCHIVE_FOLDER, BACKUPS_FOLDER, RESTORED_LOGS_FOLDER];
  for (const name of [...folders, RESTORED_FILE]) {
    rmSync(join(directory, name), { recursive: true, force: true });
  }
  mkdirSync(directory, { recursive: true });
}

function targetOf({ id, http, resp }: NodeAddress): JointTarget {
  return { id, port: http.port, respPort: resp?.port ?? 0 };
}

interface Life {
  readonly cluster: ClusterUnderTest;
  readonly nemeses: readonly Nemesis[];
  readonly random: RandomBelow;
  /** Abort it to end the run early. The faults still heal. */
  readonly stopping: AbortController;
  readonly options: RunOptions;
}

/** Observations of the run itself. */
interface Seen {
  /** Faults, and times in which the machine was too slow. */
  readonly bands: readonly NemesisBand[];
  readonly used: readonly Usage[];
  readonly notHealed: string | undefined;
}

/** Runs the clients without faults, with faults, and without faults again. Then asks all nodes to stop. */
async function liveThrough({ cluster, nemeses, random, stopping, options }: Life): Promise<Seen> {
  const { directory } = options;
  const watch = new SlowMachineWatch(nowNanos);
  const writer = new HistoryWriter(join(directory, HISTORY_FILE));
  const workload = new Workload({
    random: seeded(random(2 ** 31 - 1)),
    targets: () => cluster.members.map((id) => ({ id, port: cluster.node(id).machine.address.http.port })),
    record: (operation) => writer.append(operation),
    deadlineMillis: cluster.config.timing.requestDeadlineMillis,
    requestIdHorizonMillis: REQUEST_ID_HORIZON_MILLIS,
  });
  const joint = new JointWorkload({
    random: seeded(random(2 ** 31 - 1)),
    targets: () => cluster.members.map((id) => targetOf(cluster.node(id).machine.address)),
    record: (event) => writer.append(event),
    deadlineMillis: cluster.config.timing.requestDeadlineMillis,
    singleRules: WORKLOAD_RULES,
  });
  const backups = new BackupClient({
    random: seeded(random(2 ** 31 - 1)),
    targets: () => cluster.members.map((id) => targetOf(cluster.node(id).machine.address)),
    record: (event) => writer.append(event),
    folder: join(directory, BACKUPS_FOLDER),
    pauseMillisMax: options.lasting === undefined ? BACKUP_PAUSE_MILLIS_MAX : LASTING_BACKUP_PAUSE_MILLIS_MAX,
  });
  await joint.prepare();
  // Processes that have just started are slow, and the groups still move to their preferred leaders.
  await delay(WARM_UP_MILLIS);
  workload.start();
  joint.start();
  backups.start();
  await delay(QUIET_MILLIS, undefined, { signal: stopping.signal }).catch(() => undefined);
  const context = createContext({
    cluster,
    seed: random(2 ** 31 - 1),
    logFile: join(directory, EVENTS_FILE),
    signal: stopping.signal,
  });
  const resources = options.watch?.(cluster);
  const notHealed = await troubles(context, nemeses, { stopping, options });
  await Promise.all([delay(QUIET_MILLIS), joint.finish()]);
  await backups.stop();
  await workload.stop();
  await resources?.stop();
  watch.stop();
  writer.close();
  const used = cluster.running.map((id) => usageOf(cluster, id));
  for (const id of cluster.running) await cluster.node(id).stop();
  const bands = [...bandsOf(context.log), ...watch.bands].sort((a, b) => a.startNanos - b.startNanos);
  return { bands, used, notHealed };
}

/** Judges the files in the run's folder. If the cluster kept its promises, the databases are deleted. */
async function judge(cluster: ClusterUnderTest, seen: Seen, options: RunOptions): Promise<RunResult> {
  const { directory } = options;
  const expectedLogLines = [...DISK_COMPLAINTS, ...complaintsOfStrangers(seen.bands)];
  const run = await readRun(directory, { expectedLogLines });
  const verdict = await judgeInto(directory, run, await settingsOf(run, MACHINE));
  const processes = checkProcesses(cluster, seen);
  const outcome = outcomeOf(verdict, processes);
  if (outcome === 'kept') {
    for (const folder of [CLUSTER_FOLDER, ARCHIVE_FOLDER, BACKUPS_FOLDER])
      rmSync(join(directory, folder), { recursive: true, force: true });
  }
  const summary = summaryOf(commandOf(options), run.history, run.bands, verdict);
  writeFileSync(join(directory, SUMMARY_FILE), `${JSON.stringify(summary, undefined, 2)}\n`);
  return { verdict, processes, outcome, summary };
}

function outcomeOf({ verdict }: Verdict, processes: CheckResult): Outcome {
  if (verdict === 'violation' || processes.status !== 'ok') return 'broken';
  // An undecided result must not count as kept.
  return verdict === 'unknown' ? 'undecided' : 'kept';
}

/** The command that repeats the run, as far as chance allows. */
function commandOf({ nodes, millis, nemeses, seed, lasting }: RunOptions): string {
  if (lasting !== undefined) return `npm run soak -- --minutes ${millis / 60_000} --seed ${seed}`;
  const nemesis = nemeses.length === 0 ? '' : ` --nemesis ${nemeses.join(',')}`;
  return `npm run jepsen -- --minutes ${millis / 60_000} --nodes ${nodes}${nemesis} --seed ${seed}`;
}

/** Runs all nemeses, or first these and then the lasting ones. Resolves with the faults that did not heal. */
async function troubles(
  context: NemesisContext,
  nemeses: readonly Nemesis[],
  { stopping, options: { millis, lasting, print } }: Pick<Life, 'stopping' | 'options'>,
): Promise<string | undefined> {
  const leftMillis = Math.max(1, millis - 2 * QUIET_MILLIS);
  const timer = setTimeout(() => stopping.abort(), leftMillis);
  // Its timer keeps this controller reachable. An `AbortSignal.timeout` is reachable from nowhere else, and once
  // collected it never aborts.
  const first = new AbortController();
  const firstTimer = setTimeout(() => first.abort(), leftMillis * FIRST_FRACTION);
  context.signal.addEventListener('abort', () => first.abort(), { once: true });
  try {
    if (lasting === undefined) return await trouble(context, nemeses);
    const notHealed = await trouble({ ...context, signal: first.signal }, nemeses);
    return notHealed ?? (await trouble(context, usableNemeses(nemesesOf(lasting), print)));
  } finally {
    clearTimeout(timer);
    clearTimeout(firstTimer);
  }
}

/** Runs the nemeses until the time is over. Resolves with the faults that did not heal. */
async function trouble(context: NemesisContext, nemeses: readonly Nemesis[]): Promise<string | undefined> {
  if (nemeses.length === 0) {
    await delay(DAY_MILLIS, undefined, { signal: context.signal }).catch(() => undefined);
    return undefined;
  }
  try {
    await runMix(context, nemeses);
    return undefined;
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
}

/** Copies the files of the run into its folder: logs, and the databases of the final members. */
async function collect(
  cluster: ClusterUnderTest,
  directory: string,
  bands: readonly NemesisBand[],
): Promise<void> {
  cpSync(cluster.logsDirectory, join(directory, LOGS_FOLDER), { recursive: true });
  cpSync(cluster.archiveDirectory, join(directory, ARCHIVE_FOLDER), { recursive: true });
  writeFileSync(join(directory, NEMESIS_FILE), bands.map((band) => `${encodeBand(band)}\n`).join(''));
  const folder = join(directory, CLUSTER_FOLDER);
  mkdirSync(folder, { recursive: true });
  await writeCluster(folder, cluster.config);
  for (const id of cluster.members) {
    cpSync(cluster.node(id).machine.database, join(folder, `node-${id}`), {
      recursive: true,
      dereference: true,
    });
  }
}
