/** The options of `quorate upgrade`. */
import type { Command } from 'commander';
import { type ClusterOptions, nodeOf, withCluster } from './asked-cluster.ts';
import { explained } from './command-line.ts';
import { EXIT_TEMPORARY } from './explain-error.ts';
import { JSON_OPTION, timeoutOption } from './options.ts';

const FINISH_MILLIS = 60_000;

interface Asked extends ClusterOptions {
  readonly json?: true;
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
