/** The command `npm run jepsen:check`: judges a recorded run, or any history, and prints what it found. */
import { stat } from 'node:fs/promises';
import { dirname } from 'node:path';
import { Command } from 'commander';
import { integerOption } from '../../src/cli/options.ts';
import { readHistory } from './history-file.ts';
import { readNemesisLog } from './nemesis-log.ts';
import { judgeInto, readRun, settingsBefore, settingsOf } from './run-folder.ts';
import { judge, type Run, SETTINGS_DEFAULTS, verdictLines } from './verdict.ts';

interface Options {
  readonly cluster?: string;
  readonly nemesis?: string;
  readonly expectLog?: readonly string[];
  readonly write: boolean;
  readonly json?: true;
  readonly driftPpm?: number;
  readonly requestIdHorizonMillis?: number;
  readonly deadlineMillis?: number;
  readonly slackMillis?: number;
  readonly recoveryMillisMax?: number;
  readonly searchAnswersMax?: number;
}

/** Reads the folder of a run with everything in it, or a single history file. */
async function runAt(path: string, options: Options): Promise<Run> {
  const expectedLogLines = (options.expectLog ?? []).map((pattern) => new RegExp(pattern));
  const isFolder = (await stat(path)).isDirectory();
  const run: Run = isFolder
    ? await readRun(path, { clusterDirectory: options.cluster, expectedLogLines })
    : {
        ...(await readHistory(path)),
        bands: [],
        logs: [],
        exits: [],
        expectedLogLines,
        clusterDirectory: options.cluster,
        archiveDirectory: undefined,
        restoration: undefined,
      };
  return options.nemesis === undefined ? run : { ...run, bands: await readNemesisLog(options.nemesis) };
}

async function main(): Promise<void> {
  const defaults = SETTINGS_DEFAULTS;
  const program = new Command('jepsen:check')
    .description(
      'Checks a recorded history: over-grants, the order of its receipts, linearizability, false denials, liveness.\n' +
        'Exit code 0: no violation; 1: a violation; 2: not everything could be decided.',
    )
    .argument('<run>', 'the folder of a run, or a history as JSON lines')
    .option('--cluster <directory>', 'databases of the stopped nodes; default: cluster/ in the folder')
    .option(
      '--nemesis <file>',
      'the faults with their times, as JSON lines; default: nemesis.jsonl in the folder',
    )
    .option('--expect-log <regexp...>', 'lines of the node logs that are expected')
    .option('--no-write', 'do not write verdict.json and report.html')
    .option('--json', 'print the verdict as JSON')
    .option('--drift-ppm <n>', `clock drift the rules allow for (${defaults.driftPpm})`, integerOption)
    .option(
      '--request-id-horizon-millis <n>',
      `how long a request id is remembered (${defaults.requestIdHorizonMillis})`,
      integerOption,
    )
    .option('--deadline-millis <n>', `of a request (${defaults.deadlineMillis})`, integerOption)
    .option(
      '--slack-millis <n>',
      `time that a busy machine may add to it (${defaults.slackMillis})`,
      integerOption,
    )
    .option('--recovery-millis-max <n>', `after a fault (${defaults.recoveryMillisMax})`, integerOption)
    .option(
      '--search-answers-max <n>',
      `answers of a user whose order is searched (${defaults.searchAnswersMax})`,
      integerOption,
    )
    .parse();
  const path = program.args[0] ?? '';
  const options = program.opts<Options>();
  const run = await runAt(path, options);
  const {
    driftPpm,
    requestIdHorizonMillis,
    deadlineMillis,
    slackMillis,
    recoveryMillisMax,
    searchAnswersMax,
  } = options;
  const isFolder = (await stat(path)).isDirectory();
  const settings = await settingsOf(run, {
    ...(isFolder && (await settingsBefore(path))),
    ...(driftPpm !== undefined && { driftPpm }),
    ...(requestIdHorizonMillis !== undefined && { requestIdHorizonMillis }),
    ...(deadlineMillis !== undefined && { deadlineMillis }),
    ...(slackMillis !== undefined && { slackMillis }),
    ...(recoveryMillisMax !== undefined && { recoveryMillisMax }),
    ...(searchAnswersMax !== undefined && { searchAnswersMax }),
  });
  const folder = isFolder ? path : dirname(path);
  const verdict = options.write ? await judgeInto(folder, run, settings) : await judge(run, settings);
  const text = options.json === true ? JSON.stringify(verdict) : verdictLines(verdict).join('\n');
  process.stdout.write(`${text}\n`);
  process.exitCode = { ok: 0, violation: 1, unknown: 2 }[verdict.verdict];
}

await main();
