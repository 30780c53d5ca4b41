/** The options of `quorate backup`, `quorate restore` and `quorate recover`, and what these commands print. */
import type { Command } from 'commander';
import { NODES_MAX } from '../config/config.ts';
import { LOCAL_DEFAULTS } from '../config/cluster-directory.ts';
import { CA, type ClusterOptions, NODE, nodeOf, withCluster } from './asked-cluster.ts';
import { explained } from './command-line.ts';
import type { RecoverOptions } from './recover-command.ts';
import {
  BASE_PORT,
  DATA,
  directoryOption,
  integerFrom,
  integerOption,
  JSON_OPTION,
  NODE_ID,
  nodeOption,
  TLS,
} from './options.ts';

interface BackupOptions extends ClusterOptions {
  readonly out: string;
  readonly maxBytesPerSecond?: number;
  readonly json?: true;
}

/** The options of `quorate restore`. */
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

/** Adds `backup`, `restore` and `recover` to the program. */
export function addBackupCommands(program: Command, print: (line: string) => void): void {
  withCluster(
    explained(program.command('backup'), {
      does: 'write a snapshot of a running cluster into a directory; it contains user ids and digests of tokens',
      exits: {
        0: 'the backup is complete',
        69: 'the backup is not finished; run the command again to start over',
      },
      examples: ['quorate backup --out backups/monday'],
    }),
  )
    .requiredOption('--out <dir>', 'a directory of its own', directoryOption)
    .option(
      '--max-bytes-per-second <n>',
      'largest rate, in bytes a second (default: as fast as possible, at most 64 MiB a second)',
      integerFrom(1, Number.MAX_SAFE_INTEGER),
    )
    .option(...JSON_OPTION)
    .action(async (options: BackupOptions) => {
      const { backUp } = await import('./backup-command.ts');
      await backUp({ ...options, node: await nodeOf(options), print });
    });
  const { nodes } = LOCAL_DEFAULTS;
  explained(program.command('restore'), {
    does: 'create a new cluster from a backup; it denies all requests for a full window of each rule',
    exits: { 0: 'the cluster was created', 1: 'the backup is damaged; nothing was created' },
    examples: [
      'quorate restore --from backups/monday --verify',
      'quorate restore --from backups/monday --data ./restored',
    ],
  })
    .requiredOption('--from <dir>', 'the directory of a backup', directoryOption)
    .option(...DATA)
    .option(
      '--nodes <n>',
      `number of nodes, 1 to ${NODES_MAX} (default: ${nodes})`,
      integerFrom(1, NODES_MAX),
    )
    .option(...BASE_PORT)
    .option(...TLS)
    .option(
      '--without-tokens',
      'leave out the tokens of the old cluster: the new one is open until a token is created',
    )
    .option(
      '--old-cluster-is-gone-and-log-complete',
      'confirm that nothing was granted after the backup and that the old cluster will never run again: then nothing is denied after the start',
    )
    .option('--verify', 'only check the backup, and print what it contains')
    .option(...JSON_OPTION)
    .action(async (options: RestoreOptions) => {
      const { restore } = await import('./backup-command.ts');
      await restore({ ...options, print });
    });
  addRecoverCommand(program, print);
}

function addRecoverCommand(program: Command, print: (line: string) => void): void {
  explained(program.command('recover'), {
    does: 'let one stopped node continue alone in groups that have lost their majority for good',
    examples: ['quorate recover 1 --all --i-accept-over-grants'],
  })
    .argument(...NODE_ID)
    .option(...DATA)
    .option(
      '--group <n>',
      'a group: 0 is the group of the cluster, p + 1 the group of partition p',
      integerOption,
    )
    .option('--all', 'all groups of the node')
    .option(...NODE, nodeOption)
    .option(...CA)
    .option(
      '--i-accept-over-grants',
      'accept that data is lost and that limits may be exceeded if a lost node runs again',
    )
    .option(...JSON_OPTION)
    .action(async (id: number, options: Omit<RecoverOptions, 'id'>) => {
      const { recover } = await import('./recover-command.ts');
      await recover({ ...options, id, print });
    });
}
