/** The options of `quorate allow` and `quorate users`. */
import type { Command } from 'commander';
import { COST_MAX } from '../api/request.ts';
import { FIXED_LIMIT_MAX } from '../api/rule.ts';
import { ConfigError } from '../config/config.ts';
import { type ClusterOptions, nodeOf, withCluster } from './asked-cluster.ts';
import { explained } from './command-line.ts';
import { EXIT_MISTAKES } from './explain-error.ts';
import {
  descriptorOption,
  durationOption,
  integerFrom,
  JSON_OPTION,
  KEY_ID,
  REQUEST_ID,
  RULE,
} from './options.ts';
import type { UserChange } from './users-command.ts';

interface Asked extends ClusterOptions {
  readonly json?: true;
}

interface AllowOptions extends Asked {
  readonly rule?: string;
  readonly cost?: number;
  readonly requestId?: string;
  readonly descriptor?: Readonly<Record<string, string>>;
}

interface ChangeOptions extends Asked {
  /** Only with `block`. */
  readonly duration?: number;
}

interface SetOptions extends Asked {
  readonly rule: string;
  readonly used: number;
}

const CHANGES: Readonly<Record<UserChange, { does: string; example: string }>> = {
  block: { does: 'block a key: deny all its requests', example: 'quorate users block ada --duration 600000' },
  unblock: { does: 'end the block of a key', example: 'quorate users unblock ada' },
  reset: { does: 'clear the counts of a key', example: 'quorate users reset ada' },
};

/** Adds `allow` and `users` to the program. */
export function addUsersCommands(program: Command, print: (line: string) => void): void {
  withCluster(
    explained(program.command('allow'), {
      does: 'ask for a grant, which is counted',
      exits: { 0: 'granted', 1: 'denied' },
      examples: [
        'quorate allow ada',
        'quorate allow --descriptor customer=acme --descriptor endpoint=/reports',
      ],
    }),
  )
    .argument('[id]', 'the user who asks')
    .option(...RULE)
    .option('--cost <n>', `what the request counts, 1 to ${COST_MAX} (default: 1)`, integerFrom(1, COST_MAX))
    .option(...REQUEST_ID)
    .option(
      '--descriptor <name=value>',
      'a descriptor of the request, for rules; may be repeated',
      descriptorOption,
    )
    .option(...JSON_OPTION)
    .action(async (userId: string | undefined, options: AllowOptions) => {
      const { descriptor: descriptors, rule, cost, requestId, ...others } = options;
      if (userId === undefined && descriptors === undefined)
        throw new ConfigError('<id>', 'is missing: name a user, or give --descriptor name=value');
      const { askForGrant } = await import('./users-command.ts');
      const terms = { userId, rule, cost, requestId, descriptors };
      const asked = { ...others, node: await nodeOf(others), print };
      if ((await askForGrant(terms, asked)) === 'denied') process.exitCode = EXIT_MISTAKES;
    });
  const users = explained(program.command('users'), {
    does: 'show the limits of a user, and change the state of a key',
    examples: ['quorate users get ada'],
  });
  withCluster(
    explained(users.command('get'), {
      does: 'show what is left under every rule; counts nothing',
      examples: ['quorate users get ada', 'quorate users get customer=acme'],
    }),
  )
    .argument(...KEY_ID)
    .option(...RULE)
    .option(...JSON_OPTION)
    .action(async (userId: string, { rule, ...options }: Asked & { rule?: string }) => {
      const { showUser } = await import('./users-command.ts');
      await showUser(userId, rule, { ...options, node: await nodeOf(options), print });
    });
  withCluster(
    explained(users.command('refund'), {
      does: 'refund the grant of a request id',
      examples: ['quorate users refund ada --request-id order-7'],
    }),
  )
    .argument(...KEY_ID)
    .requiredOption(...REQUEST_ID)
    .option(...JSON_OPTION)
    .action(async (userId: string, { requestId, ...options }: Asked & { requestId: string }) => {
      const { refundUser } = await import('./users-command.ts');
      await refundUser(userId, requestId, { ...options, node: await nodeOf(options), print });
    });
  addChanges(users, print);
}

function addChanges(users: Command, print: (line: string) => void): void {
  withCluster(
    explained(users.command('set'), {
      does: 'set how much a key has used under a rule, replacing its count',
      examples: ['quorate users set ada --rule per-user --used 40'],
    }),
  )
    .argument(...KEY_ID)
    .requiredOption(...RULE)
    .requiredOption('--used <n>', 'how much is used, 0 to the limit', integerFrom(0, FIXED_LIMIT_MAX))
    .option(...JSON_OPTION)
    .action(async (userId: string, { rule, used, ...options }: SetOptions) => {
      const { setUsed } = await import('./users-command.ts');
      await setUsed(userId, { rule, used }, { ...options, node: await nodeOf(options), print });
    });
  for (const [change, { does, example }] of Object.entries(CHANGES)) {
    const command = withCluster(explained(users.command(change), { does, examples: [example] }))
      .argument(...KEY_ID)
      .option(...JSON_OPTION)
      .action(async (userId: string, { duration: durationMillis, ...options }: ChangeOptions) => {
        const { changeUser } = await import('./users-command.ts');
        const asked = { ...options, node: await nodeOf(options), print };
        await changeUser(userId, { change: change as UserChange, durationMillis }, asked);
      });
    if (change === 'block') command.addOption(durationOption());
  }
}
