/** The options of `quorate status`, `doctor`, `top`, `drain` and `upgrade`. */
import type { Command } from 'commander';
import { type ClusterOptions, nodeOf, withCluster, clusterOf } from './asked-cluster.ts';
import { explained, packageVersion } from './command-line.ts';
import { EXIT_TEMPORARY, EXIT_MISTAKES } from './explain-error.ts';
import { JSON_OPTION, timeoutOption, integerFrom, NODE_ID } from './options.ts';

const DRAIN_MILLIS = 60_000;
const FINISH_MILLIS = 60_000;
const INTERVAL_MILLIS = 1_000;
const intervalOption = integerFrom(100, 60_000);

interface Asked extends ClusterOptions {
  readonly json?: true;
}

interface DrainOptions extends Asked {
  readonly undo?: boolean;
  readonly wait?: boolean;
  readonly timeout: number;
}

interface TopOptions extends Asked {
  readonly interval: number;
  readonly once?: true;
}

/** Overwrites the previous screen, without clearing it first, to avoid flicker. */
function overwrite(lines: readonly string[]): void {
  process.stdout.write(`\u001B[H${lines.map((line) => `${line}\u001B[K`).join('\n')}\n\u001B[J`);
}

/** Adds the commands `status`, `doctor`, `top` and `drain` to the program. */
export function addOperationsCommands(program: Command, print: (line: string) => void): void {
  addDrain(program, print);
  withCluster(
    explained(program.command('status'), {
      does: 'show the state of a cluster on one screen',
      exits: { 0: 'no problems', 1: 'there are problems', 69: 'no node answers' },
      examples: ['quorate status', 'quorate status --node 10.0.0.1:8101'],
    }),
  )
    .option(...JSON_OPTION)
    .action(async (options: Asked) => {
      const { showStatus } = await import('./status-command.ts');
      const health = await showStatus({ ...options, cluster: await clusterOf(options), print });
      if (health === 'degraded') process.exitCode = EXIT_MISTAKES;
    });
  withCluster(
    explained(program.command('doctor'), {
      does: 'check a cluster, its nodes on this machine and their configuration, and say what to do; changes nothing',
      exits: { 0: 'nothing fails', 1: 'something fails' },
      examples: ['quorate doctor', 'quorate doctor 2 --data ./data', 'quorate doctor --node 10.0.0.1:8101'],
    }),
  )
    .argument('[id]', 'the id of a node (default: all nodes with a database in the directory)', NODE_ID[2])
    .option(...JSON_OPTION)
    .action(async (id: number | undefined, options: Asked) => {
      const { examine } = await import('./doctor-command.ts');
      const init = { ...options, ...(id !== undefined && { id }), version: packageVersion(), print };
      if (!(await examine(init))) process.exitCode = EXIT_MISTAKES;
    });
  withCluster(
    explained(program.command('top'), {
      does: 'show what a cluster is doing; on a terminal it updates until Ctrl-C',
      examples: ['quorate top', 'quorate top --once'],
    }),
  )
    .option('--once', 'show it once; so does --json')
    .option(
      '--interval <ms>',
      'time between two readings, 100 to 60000 milliseconds',
      intervalOption,
      INTERVAL_MILLIS,
    )
    .option(...JSON_OPTION)
    .action(async ({ interval: intervalMillis, ...options }: TopOptions) => {
      const { showTop } = await import('./top-command.ts');
      const cluster = await clusterOf(options);
      const screen = process.stdout.isTTY ? { screen: overwrite } : {};
      if (process.stdout.isTTY && options.once !== true && options.json !== true)
        process.stdout.write('\u001B[2J');
      await showTop({ ...options, cluster, ...screen, intervalMillis, print });
    });
}

function addDrain(program: Command, print: (line: string) => void): void {
  withCluster(
    explained(program.command('drain'), {
      does: 'make a node hand over its leadership and take no requests, also after a restart, until --undo',
      exits: {
        0: 'done, or without --wait: requested',
        75: 'accepted, and not finished within --timeout or not visible from here; the cluster continues',
      },
      examples: ['quorate drain 2 --wait', 'quorate drain 2 --undo --wait'],
    }),
  )
    .argument(...NODE_ID)
    .option('--undo', 'let it take requests and lead again')
    .option('--wait', 'wait until it leads no group, or with --undo until it is ready')
    .option(...timeoutOption, DRAIN_MILLIS)
    .option(...JSON_OPTION)
    .action(async (id: number, { undo, wait = false, timeout: timeoutMillis, ...options }: DrainOptions) => {
      const { drainNode } = await import('./drain-command.ts');
      const node = await nodeOf(options);
      const wanted = { id, isDraining: undo !== true, wait, timeoutMillis };
      const outcome = await drainNode({ ...options, ...wanted, node, print });
      if (outcome === 'pending') process.exitCode = EXIT_TEMPORARY;
    });
}

/** Adds `upgrade` to the program. */
export function addUpgradeCommands(program: Command, print: (line: string) => void): void {
  const upgrade = explained(program.command('upgrade'), {
    does: 'show the progress of a rolling upgrade, or finish it when all nodes run the new version',
    examples: ['quorate upgrade status'],
  });
  withCluster(
    explained(upgrade.command('status'), {
      does: 'show which version the cluster and its nodes are at',
      exits: { 0: 'there is nothing to do', 75: 'an upgrade is not finished' },
      examples: ['quorate upgrade status'],
    }),
  )
    .option(...JSON_OPTION)
    .action(async (options: Asked) => {
      const { showUpgrade } = await import('./upgrade-command.ts');
      const shown = await showUpgrade({ ...options, node: await nodeOf(options), print });
      if (shown === 'unfinished') process.exitCode = EXIT_TEMPORARY;
    });
  withCluster(
    explained(upgrade.command('finish'), {
      does: 'raise the version of the cluster to that of its nodes, for good: nodes of older versions can no longer take part',
      exits: { 0: 'done', 75: 'not finished within --timeout; run it again' },
      examples: ['quorate upgrade finish'],
    }),
  )
    .option(...timeoutOption, FINISH_MILLIS)
    .option(...JSON_OPTION)
    .action(async ({ timeout: timeoutMillis, ...options }: Asked & { timeout: number }) => {
      const { finishUpgrade } = await import('./upgrade-command.ts');
      await finishUpgrade({ ...options, node: await nodeOf(options), timeoutMillis, print });
    });
}
