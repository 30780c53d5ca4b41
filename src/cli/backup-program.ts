/** `quorate backup`, `quorate restore` and `quorate recover`: what the command line takes, and what is told. */
import type { Command } from 'commander';
import { NODES_MAX } from '../config/config.ts';
import { LOCAL_DEFAULTS } from '../config/cluster-directory.ts';
import { NODE_ID_MAX } from '../api/node-address.ts';
import { CA } from './ca-option.ts';
import type { RecoverOptions } from './recover-command.ts';
import {
  BASE_PORT,
  directoryOption,
  integerFrom,
  integerOption,
  JSON_OPTION,
  nodeOption,
  VIA_DEFAULT,
} from './options.ts';

interface BackupOptions {
  readonly out: string;
  readonly via: string;
  readonly maxBytesPerSecond?: number;
  readonly json?: true;
}

export interface RestoreOptions {
  readonly from: string;
  readonly data: string;
  readonly nodes?: number;
  readonly basePort?: number;
  readonly tls?: boolean;
  readonly oldClusterIsGoneAndLogComplete?: true;
  readonly withoutTokens?: true;
  readonly verify?: true;
  readonly json?: true;
}

export function addBackupCommands(program: Command, print: (line: string) => void): void {
  program
    .command('backup')
    .description(
      'write a snapshot of every group of a running cluster into a directory; it holds the ids of users, and digests of tokens',
    )
    .requiredOption('--out <dir>', 'a directory of its own', directoryOption)
    .option('--via <host:port>', 'a node of the cluster', nodeOption, VIA_DEFAULT)
    .option(...CA)
    .option(
      '--max-bytes-per-second <n>',
      'read no faster than this (default: as fast as it goes, at most 64 MiB a second)',
      integerFrom(1, Number.MAX_SAFE_INTEGER),
    )
    .option(...JSON_OPTION)
    .action(async (options: BackupOptions) => {
      const { backUp } = await import('./backup-command.ts');
      await backUp({ ...options, print });
    });
  const { nodes } = LOCAL_DEFAULTS;
  program
    .command('restore')
    .description(
      'create a new cluster that begins with a backup; everybody is denied for a full window, unless the backup holds all that was ever granted',
    )
    .requiredOption('--from <dir>', 'the directory of a backup', directoryOption)
    .option('--data <dir>', 'where the databases are kept', directoryOption, './data')
    .option('--nodes <n>', `number of nodes, 1 to ${NODES_MAX} (default ${nodes})`, integerFrom(1, NODES_MAX))
    .option(...BASE_PORT)
    .option('--tls', 'make certificates for all nodes, and speak TLS with peers and clients')
    .option(
      '--without-tokens',
      'leave out the tokens of the old cluster: the new one is open until one is made',
    )
    .option(
      '--old-cluster-is-gone-and-log-complete',
      'nothing was granted after the backup, and the old cluster will never run again: nobody is denied for what the backup does not hold',
    )
    .option('--verify', 'only read the backup, and say what is in it')
    .option(...JSON_OPTION)
    .action(async (options: RestoreOptions) => {
      const { restore } = await import('./restore-command.ts');
      await restore({ ...options, print });
    });
  addRecoverCommand(program, print);
}

function addRecoverCommand(program: Command, print: (line: string) => void): void {
  program
    .command('recover')
    .description(
      'only where a majority of nodes is lost for good: have one node, which is stopped, go on alone with what it holds',
    )
    .requiredOption('--id <n>', 'the survivor', integerFrom(1, NODE_ID_MAX))
    .option('--data <dir>', 'directory with cluster.json', directoryOption, './data')
    .option('--group <n>', '0 is that of the cluster, p + 1 that of partition p', integerOption)
    .option('--all', 'all groups that it holds')
    .option(
      '--via <host:port>',
      'a node that runs: if it knows of a leader, nothing is recovered',
      nodeOption,
    )
    .option(...CA)
    .option('--i-accept-over-grants', 'what is lost is lost, and the lost nodes will never run again')
    .option(...JSON_OPTION)
    .action(async (options: RecoverOptions) => {
      const { recover } = await import('./recover-command.ts');
      await recover({ ...options, print });
    });
}
