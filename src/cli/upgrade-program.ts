/** `quorate upgrade`: what the command line takes, and what it asks for. */
import type { Command } from 'commander';
import { CA } from './ca-option.ts';
import { EXIT_TEMPORARY } from './explain-error.ts';
import { integerOption, JSON_OPTION, nodeOption, VIA_DEFAULT } from './options.ts';

const VIA = ['--via <host:port>', 'a node of the cluster that was upgraded'] as const;
const FINISH_MILLIS = 60_000;

export function addUpgradeCommands(program: Command, print: (line: string) => void): void {
  const upgrade = program
    .command('upgrade')
    .description(
      'look at a rolling upgrade of a cluster, or finish it when all its nodes run the new version',
    );
  upgrade
    .command('status')
    .description(
      'show which version the cluster and its nodes are at; exits with 0 if there is nothing to do, and with 75 if there is',
    )
    .option(...VIA, nodeOption, VIA_DEFAULT)
    .option(...CA)
    .option(...JSON_OPTION)
    .action(async (options: { via: string; json?: true }) => {
      const { showUpgrade } = await import('./upgrade-command.ts');
      if ((await showUpgrade({ ...options, print })) === 'unfinished') process.exitCode = EXIT_TEMPORARY;
    });
  upgrade
    .command('finish')
    .description(
      'raise the version of the cluster to that of its nodes, for good: no node of the version before is spoken with any more',
    )
    .option('--timeout <ms>', 'how long to ask again if nobody can decide', integerOption, FINISH_MILLIS)
    .option(...VIA, nodeOption, VIA_DEFAULT)
    .option(...CA)
    .option(...JSON_OPTION)
    .action(async ({ timeout: timeoutMillis, ...options }: { timeout: number; via: string; json?: true }) => {
      const { finishUpgrade } = await import('./upgrade-command.ts');
      await finishUpgrade({ ...options, timeoutMillis, print });
    });
}
