/**
 * The folder of one run: `history.jsonl`, `nemesis.jsonl`, `exits.jsonl`, `logs/node-<id>.log`, `archive/`, the last
 * `backups/`, the answers of a restored backup in `restored.json`, the databases in `cluster/` (or elsewhere), and the
 * results: `verdict.json` and `report.html`.
 */
import { access, readdir, readFile, writeFile } from 'node:fs/promises';
import { basename, join, resolve } from 'node:path';
import { readCluster } from '../../src/config/cluster-directory.ts';
import type { NodeExit, NodeLog } from './checkers/logs.ts';
import { readHistory } from './history-file.ts';
import { readNemesisLog } from './nemesis-log.ts';
import type { Restoration } from './restored-cluster.ts';
import { reportPage } from './report.ts';
import { judge, type Run, type Settings, SETTINGS_DEFAULTS, type Verdict } from './verdict.ts';

export const HISTORY_FILE = 'history.jsonl';
export const NEMESIS_FILE = 'nemesis.jsonl';
export const EXITS_FILE = 'exits.jsonl';
export const LOGS_FOLDER = 'logs';
export const ARCHIVE_FOLDER = 'archive';
export const BACKUPS_FOLDER = 'backups';
/** The answers of the last backup after its restoration. */
export const RESTORED_FILE = 'restored.json';
/** The logs of the nodes of the restored cluster. */
export const RESTORED_LOGS_FOLDER = 'restored-logs';
const CLUSTER_FOLDER = 'cluster';
const VERDICT_FILE = 'verdict.json';
const REPORT_FILE = 'report.html';
/** The command of the run, so that it can be repeated. */
export const COMMAND_FILE = 'command.txt';

/** `{"node":2,"code":null,"signal":"SIGKILL","at_ns":1}` */
export function encodeExit({ node, code, signal, atNanos }: NodeExit): string {
  return JSON.stringify({ node, code, signal, at_ns: atNanos });
}

function decodeExit(line: string): NodeExit {
  const { node, code, signal, at_ns: at } = JSON.parse(line) as Record<string, unknown>;
  return {
    node: typeof node === 'number' ? node : 0,
    code: typeof code === 'number' ? code : null,
    signal: typeof signal === 'string' ? signal : null,
    atNanos: typeof at === 'number' ? at : 0,
  };
}

export interface ReadOptions {
  /** The directory with `cluster.json` and the databases, if it is not `cluster/`. All nodes must have stopped. */
  readonly clusterDirectory?: string | undefined;
  readonly expectedLogLines?: readonly RegExp[];
}

/** Reads the files of a run. Only the history is mandatory. */
export async function readRun(folder: string, options: ReadOptions = {}): Promise<Run> {
  const here = (name: string): string => join(folder, name);
  const ownCluster = (await exists(join(here(CLUSTER_FOLDER), 'cluster.json')))
    ? here(CLUSTER_FOLDER)
    : undefined;
  const exits = (await exists(here(EXITS_FILE))) ? await readFile(here(EXITS_FILE), 'utf8') : '';
  return {
    ...(await readHistory(here(HISTORY_FILE))),
    bands: (await exists(here(NEMESIS_FILE))) ? await readNemesisLog(here(NEMESIS_FILE)) : [],
    logs: await nodeLogs(here(LOGS_FOLDER)),
    exits: exits
      .split('\n')
      .filter((line) => line !== '')
      .map(decodeExit),
    expectedLogLines: options.expectedLogLines ?? [],
    clusterDirectory: options.clusterDirectory ?? ownCluster,
    restoration: (await exists(here(RESTORED_FILE)))
      ? (JSON.parse(await readFile(here(RESTORED_FILE), 'utf8')) as Restoration)
      : undefined,
    archiveDirectory: (await exists(here(ARCHIVE_FOLDER))) ? here(ARCHIVE_FOLDER) : undefined,
  };
}

async function nodeLogs(folder: string): Promise<NodeLog[]> {
  if (!(await exists(folder))) return [];
  const names = (await readdir(folder)).sort();
  return names.flatMap((name) => {
    const node = /^node-(\d+)\b.*\.log$/.exec(name)?.[1];
    return node === undefined ? [] : [{ node: Number(node), path: join(folder, name) }];
  });
}

/** The settings of the tested cluster, if its configuration is there. */
export async function settingsOf(
  { clusterDirectory }: Run,
  given: Partial<Settings> = {},
): Promise<Settings> {
  const config = clusterDirectory === undefined ? undefined : await readCluster(clusterDirectory);
  return {
    ...SETTINGS_DEFAULTS,
    ...(config !== undefined && {
      driftPpm: config.rules.clockDriftPpm,
      requestIdHorizonMillis: config.rules.requestIdHorizonMillis,
      deadlineMillis: config.timing.requestDeadlineMillis,
      areSnapshotsExpected: config.snapshotEveryBytes !== undefined,
    }),
    ...given,
  };
}

/**
 * The settings that the run in this folder was last judged with. A successful run deletes its configuration, and
 * without its horizon every later repetition would count as a second charge.
 */
export async function settingsBefore(folder: string): Promise<Partial<Settings>> {
  const file = join(folder, VERDICT_FILE);
  return (await exists(file)) ? (JSON.parse(await readFile(file, 'utf8')) as Verdict).settings : {};
}

/** Judges a run and writes its verdict and its page into `folder`. */
export async function judgeInto(folder: string, run: Run, settings: Settings): Promise<Verdict> {
  const verdict = await judge(run, settings);
  await writeFile(join(folder, VERDICT_FILE), `${JSON.stringify(verdict, null, 2)}\n`);
  const { history, bands } = run;
  const title = `Run ${basename(resolve(folder))}`;
  const commandFile = join(folder, COMMAND_FILE);
  const command = (await exists(commandFile)) ? (await readFile(commandFile, 'utf8')).trim() : undefined;
  await writeFile(join(folder, REPORT_FILE), reportPage({ title, history, bands, verdict, command }));
  return verdict;
}

async function exists(path: string): Promise<boolean> {
  return access(path).then(
    () => true,
    () => false,
  );
}
