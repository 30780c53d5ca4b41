/** `quorate drain` and what else shows how a running cluster is: what the command line takes, and what it asks for. */
import type { Command } from 'commander';
import { NODE_ID_MAX } from '../api/node-address.ts';
import { CA } from './ca-option.ts';
import { EXIT_TEMPORARY } from './explain-error.ts';
import { integerFrom, integerOption, JSON_OPTION, urlOption, VIA_DEFAULT } from './options.ts';

const idOption = integerFrom(1, NODE_ID_MAX);
const VIA = ['--via <url>', 'a node of the cluster'] as const;
const DRAIN_MILLIS = 60_000;

export function addOperationsCommands(program: Command, print: (line: string) => void): void {
  program
    .command('drain')
    .description(
      'have a node hand over what it leads and take no requests, also after a restart, until --undo; exits with 0 when it is so, and with 75 if --wait was not long enough',
    )
    .requiredOption('--node <id>', 'which node', idOption)
    .option('--undo', 'it takes requests and leads again', false)
    .option('--wait', 'until it leads nothing, or with --undo until it is ready', false)
    .option('--timeout <ms>', 'how long to wait', integerOption, DRAIN_MILLIS)
    .option(...VIA, urlOption, VIA_DEFAULT)
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
