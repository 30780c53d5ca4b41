/** `quorate drain` and what else shows how a running cluster is: what the command line takes, and what it asks for. */
import type { Command } from 'commander';
import { NODE_ID_MAX } from '../api/node-address.ts';
import { CA } from './ca-option.ts';
import type { Where } from './survey.ts';
import { packageVersion } from './command-line.ts';
import { EXIT_MISTAKES, EXIT_TEMPORARY } from './explain-error.ts';
import {
  directoryOption,
  integerFrom,
  integerOption,
  JSON_OPTION,
  nodeOption,
  VIA_DEFAULT,
} from './options.ts';

const idOption = integerFrom(1, NODE_ID_MAX);
const VIA = ['--via <host:port>', 'a node of the cluster'] as const;
const DRAIN_MILLIS = 60_000;
const DATA = ['--data <dir>', 'whose cluster.json names nodes of the cluster'] as const;
const INTERVAL_MILLIS = 1_000;
const intervalOption = integerFrom(100, 60_000);

/** What was named is asked. Where nothing was, a node of this machine, or those of the cluster of this directory. */
function asNamed<Options extends Required<Where>>(
  { via, data, ...others }: Options,
  command: Command,
): Omit<Options, keyof Where> & Where {
  const isNamed = (name: keyof Where): boolean => command.getOptionValueSource(name) !== 'default';
  if (isNamed('via') === isNamed('data')) return { ...others, via, data };
  return { ...others, ...(isNamed('via') ? { via } : { data }) };
}

/** Over what was shown before, without a flicker. */
function overwrite(lines: readonly string[]): void {
  process.stdout.write(`\u001B[H${lines.map((line) => `${line}\u001B[K`).join('\n')}\n\u001B[J`);
}

export function addOperationsCommands(program: Command, print: (line: string) => void): void {
  addDrain(program, print);
  program
    .command('status')
    .description(
      'show how a cluster is; exits with 0 if nothing is wrong, with 75 if something is, and with 69 if no node answers',
    )
    .option(...VIA, nodeOption, VIA_DEFAULT)
    .option(...DATA, directoryOption, './data')
    .option(...CA)
    .option(...JSON_OPTION)
    .action(async (options: { via: string; data: string; json?: true }, command: Command) => {
      const { showStatus } = await import('./status-command.ts');
      const health = await showStatus({ ...asNamed(options, command), print });
      if (health === 'degraded') process.exitCode = EXIT_TEMPORARY;
    });
  program
    .command('doctor')
    .description(
      'look at cluster.json, the databases, disks, ports, certificates and clocks of this machine and its cluster, and say what to do; changes nothing; exits with 0 if nothing fails, with 1 if something does',
    )
    .option('--data <dir>', 'directory with cluster.json', directoryOption, './data')
    .option('--id <n>', 'which node (default: all whose database is there)', idOption)
    .option('--via <host:port>', 'a node to ask about the cluster (default: one that runs here)', nodeOption)
    .option(...CA)
    .option(...JSON_OPTION)
    .action(async (options: { data: string; id?: number; via?: string; json?: true }) => {
      const { examine } = await import('./doctor-command.ts');
      if (!(await examine({ ...options, version: packageVersion(), print })))
        process.exitCode = EXIT_MISTAKES;
    });
  program
    .command('top')
    .description('show what a cluster does just now, again and again on a terminal until Ctrl-C')
    .option(...VIA, nodeOption, VIA_DEFAULT)
    .option(...DATA, directoryOption, './data')
    .option(...CA)
    .option('--once', 'show it once')
    .option('--interval <ms>', 'between two readings, 100 to 60000', intervalOption, INTERVAL_MILLIS)
    .option('--json', 'print JSON, once')
    .action(
      async (
        {
          interval: intervalMillis,
          ...options
        }: {
          via: string;
          data: string;
          interval: number;
          once?: true;
          json?: true;
        },
        command: Command,
      ) => {
        const { showTop } = await import('./top-command.ts');
        const screen = process.stdout.isTTY ? { screen: overwrite } : {};
        if (process.stdout.isTTY && options.once !== true && options.json !== true)
          process.stdout.write('\u001B[2J');
        await showTop({ ...asNamed(options, command), ...screen, intervalMillis, print });
      },
    );
}

function addDrain(program: Command, print: (line: string) => void): void {
  program
    .command('drain')
    .description(
      'have a node hand over what it leads and take no requests, also after a restart, until --undo; exits with 0 when it is so, and with 75 if --wait was not long enough',
    )
    .requiredOption('--node <id>', 'which node', idOption)
    .option('--undo', 'it takes requests and leads again', false)
    .option('--wait', 'until it leads nothing, or with --undo until it is ready', false)
    .option('--timeout <ms>', 'how long to wait', integerOption, DRAIN_MILLIS)
    .option(...VIA, nodeOption, VIA_DEFAULT)
    .option(...CA)
    .option(...JSON_OPTION)
    .action(
      async ({
        undo,
        timeout: timeoutMillis,
        ...options
      }: {
        node: number;
        undo: boolean;
        wait: boolean;
        timeout: number;
        via: string;
        json?: true;
      }) => {
        const { drainNode } = await import('./drain-command.ts');
        const outcome = await drainNode({ ...options, isDraining: !undo, timeoutMillis, print });
        if (outcome === 'pending') process.exitCode = EXIT_TEMPORARY;
      },
    );
}
