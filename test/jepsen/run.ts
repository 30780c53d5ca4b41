/**
 * One run: a cluster of real processes, clients, nemeses, then peace; afterwards everything that was seen is judged.
 * What a run leaves behind is a folder with the history, the logs and the verdict.
 */
import { copyFileSync, mkdirSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { seeded } from '../raft/seeded.ts';
import { ClusterUnderTest } from './cluster-under-test.ts';
import { HistoryWriter, type Operation } from './history.ts';
import { judge, type Verdict } from './judge.ts';
import { createContext, NEMESES, usableNemeses } from './nemesis/all.ts';
import { runMix } from './nemesis/mix.ts';
import type { Nemesis, NemesisContext, NemesisLog } from './nemesis/nemesis.ts';
import type { NemesisBand } from './nemesis-log.ts';
import { Workload, WORKLOAD_RULES } from './workload.ts';

export interface RunOptions {
  readonly nodes: number;
  readonly millis: number;
  /** Names of nemeses or of families; none: nothing breaks. */
  readonly nemeses: readonly string[];
  readonly seed: number;
  /** Gets the folder's files; made if need be. */
  readonly directory: string;
  readonly print: (line: string) => void;
  /** A module that is loaded into every node before the product, for tests of the tests. */
  readonly preload?: string;
}

export interface RunResult {
  readonly verdict: Verdict;
  /** Nemeses that this machine cannot run, among those asked for. */
  readonly skipped: readonly string[];
  readonly faults: number;
  readonly quietMillis: number;
}

/** Before the first fault and after the last, in which everything must work. */
const QUIET_MILLIS = 6_000;
const SPARES = 8;

/** Families by the names one would look for. */
const ALIASES: Readonly<Record<string, (nemesis: Nemesis) => boolean>> = {
  kill: ({ family, name }) => family === 'process' && /kill|restart/.test(name),
  pause: ({ family, name }) => family === 'process' && /pause|stall/.test(name),
  partition: ({ name }) => name.startsWith('partition'),
};

/** The nemeses that `names` mean. @throws RangeError for a name that means nothing */
export function nemesesOf(names: readonly string[]): Nemesis[] {
  const chosen = new Set<Nemesis>();
  for (const name of names) {
    const isMeant =
      ALIASES[name] ??
      ((nemesis: Nemesis) =>
        nemesis.name === name || (nemesis.family === name && nemesis.isBeyondPromise !== true));
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
  const { nodes, millis, seed, directory, print } = options;
  mkdirSync(directory, { recursive: true });
  const random = seeded(seed);
  const wanted = nemesesOf(options.nemeses);
  const usable = usableNemeses(wanted, print);
  const cluster = await ClusterUnderTest.create({
    nodes,
    rules: WORKLOAD_RULES,
    random: seeded(random(2 ** 31 - 1)),
    spares: SPARES,
    ...(options.preload !== undefined && { preload: options.preload }),
  });
  const stopping = new AbortController();
  const onSignal = (): void => stopping.abort();
  process.once('SIGINT', onSignal);
  const operations: Operation[] = [];
  const writer = new HistoryWriter(join(directory, 'history.jsonl'));
  try {
    await cluster.startAll();
    await cluster.ready();
    const workload = new Workload({
      random: seeded(random(2 ** 31 - 1)),
      targets: () => cluster.members.map((id) => ({ id, port: cluster.address(id).http.port })),
      record(operation) {
        operations.push(operation);
        writer.append(operation);
      },
      deadlineMillis: cluster.config.timing.requestDeadlineMillis,
    });
    workload.start();
    await delay(QUIET_MILLIS, undefined, { signal: stopping.signal }).catch(() => undefined);
    const context = createContext({
      cluster,
      seed: random(2 ** 31 - 1),
      logFile: join(directory, 'nemesis.jsonl'),
      signal: AbortSignal.any([AbortSignal.timeout(Math.max(1, millis - 2 * QUIET_MILLIS)), stopping.signal]),
    });
    const notHealed = await trouble(context, usable, millis);
    await delay(QUIET_MILLIS);
    await workload.stop();
    writer.close();
    for (const id of cluster.running) await cluster.stop(id);
    copyLogs(cluster, directory);
    const verdict = await judge({ directory, cluster, operations, bands: bandsOf(context.log), notHealed });
    const faults = context.log.events.filter(({ event }) => event === 'start').length;
    return { verdict, skipped: difference(wanted, usable), faults, quietMillis: QUIET_MILLIS };
  } finally {
    process.off('SIGINT', onSignal);
    await cluster.dispose();
  }
}

/** Runs the nemeses until the time is over. Resolves with what did not heal. */
async function trouble(
  context: NemesisContext,
  nemeses: readonly Nemesis[],
  millis: number,
): Promise<string | undefined> {
  if (nemeses.length === 0) {
    await delay(Math.max(0, millis - 2 * QUIET_MILLIS), undefined, { signal: context.signal }).catch(
      () => undefined,
    );
    return undefined;
  }
  try {
    await runMix(context, nemeses);
    return undefined;
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
}

function difference(wanted: readonly Nemesis[], usable: readonly Nemesis[]): string[] {
  return wanted.filter((nemesis) => !usable.includes(nemesis)).map(({ name }) => name);
}

function copyLogs(cluster: ClusterUnderTest, directory: string): void {
  const target = join(directory, 'logs');
  mkdirSync(target, { recursive: true });
  for (const name of readdirSync(cluster.logsDirectory)) {
    copyFileSync(join(cluster.logsDirectory, name), join(target, name));
  }
}

/** From each start to its end. Nemeses of one name do not overlap. */
export function bandsOf(log: NemesisLog): NemesisBand[] {
  const bands: NemesisBand[] = [];
  const open = new Map<string, { nodes: readonly number[]; startNanos: number }>();
  for (const { event, name, nodes = [], atNanos } of log.events) {
    const began = open.get(name);
    if (event === 'start') open.set(name, { nodes, startNanos: atNanos });
    else if ((event === 'end' || event === 'failed') && began !== undefined) {
      open.delete(name);
      bands.push({ kind: name, ...began, endNanos: event === 'end' ? atNanos : null });
    }
  }
  for (const [kind, began] of open) bands.push({ kind, ...began, endNanos: null });
  return bands.sort((a, b) => a.startNanos - b.startNanos);
}
