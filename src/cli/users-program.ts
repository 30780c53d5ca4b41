/** `quorate allow` and `quorate users`: what the command line takes, and what it asks for. */
import type { Command } from 'commander';
import { COST_MAX } from '../api/request.ts';
import { FIXED_LIMIT_MAX } from '../api/rule.ts';
import { CA } from './ca-option.ts';
import { EXIT_MISTAKES } from './explain-error.ts';
import {
  descriptorOption,
  durationOption,
  integerFrom,
  JSON_OPTION,
  NODE,
  nodeOption,
  VIA_DEFAULT,
} from './options.ts';
import type { UserChange } from './users-command.ts';

interface AskedOf {
  readonly node: string;
  readonly json?: true;
}

interface AllowOptions extends AskedOf {
  readonly rule?: string;
  readonly cost?: number;
  readonly requestId?: string;
  readonly descriptor?: Readonly<Record<string, string>>;
}

interface ChangeOptions extends AskedOf {
  /** Only of the command that blocks. */
  readonly durationMillis?: number;
}

interface SetOptions extends AskedOf {
  readonly rule: string;
  readonly used: number;
}

const USER = ['<id>', 'a user, or any key that a limit counts by, such as user=ada'] as const;
const NODE_SAID = 'a node of the cluster';
const CHANGES: Readonly<Record<UserChange, string>> = {
  block: 'deny everything of a key, on the machine of a node',
  unblock: 'deny no more of a key than the rules say',
  reset: 'forget what a key was granted',
};

export function addUsersCommands(program: Command, print: (line: string) => void): void {
  program
    .command('allow')
    .description('ask for a grant, and take it; exits with 0 if it is granted, and with 1 if it is denied')
    .argument('[id]', 'whose budget is asked for')
    .option('--rule <rule>', 'by which rule')
    .option('--cost <n>', 'of the request', integerFrom(1, COST_MAX))
    .option('--request-id <id>', 'makes it safe to ask again')
    .option('--descriptor <name=value>', 'what the request is, for rules; once for each', descriptorOption)
    .option(NODE, NODE_SAID, nodeOption, VIA_DEFAULT)
    .option(...CA)
    .option(...JSON_OPTION)
    .action(async (userId: string | undefined, options: AllowOptions) => {
      const { askForGrant } = await import('./users-command.ts');
      const { descriptor: descriptors, rule, cost, requestId, ...asked } = options;
      const terms = { userId, rule, cost, requestId, descriptors };
      if ((await askForGrant(terms, { ...asked, print })) === 'denied') process.exitCode = EXIT_MISTAKES;
    });
  const users = program.command('users').description('show how a user stands, and change what a key may');
  users
    .command('get')
    .description('show what is left under every rule; nothing is counted')
    .argument(...USER)
    .option('--rule <rule>', 'under this one alone')
    .option(NODE, NODE_SAID, nodeOption, VIA_DEFAULT)
    .option(...CA)
    .option(...JSON_OPTION)
    .action(async (userId: string, { rule, ...options }: AskedOf & { rule?: string }) => {
      const { showUser } = await import('./users-command.ts');
      await showUser(userId, rule, { ...options, print });
    });
  users
    .command('refund')
    .description('take back what was granted under a request id')
    .argument(...USER)
    .requiredOption('--request-id <id>', 'of the request')
    .option(NODE, NODE_SAID, nodeOption, VIA_DEFAULT)
    .option(...CA)
    .option(...JSON_OPTION)
    .action(async (userId: string, { requestId, ...options }: AskedOf & { requestId: string }) => {
      const { refundUser } = await import('./users-command.ts');
      await refundUser(userId, requestId, { ...options, print });
    });
  addChanges(users, print);
}

function addChanges(users: Command, print: (line: string) => void): void {
  users
    .command('set')
    .description('say how much a key has used by a rule, in place of what it was granted')
    .argument(...USER)
    .requiredOption('--rule <rule>', 'a rule with all its windows, or one window, such as per-user/day')
    .requiredOption('--used <n>', 'from 0 to the limit', integerFrom(0, FIXED_LIMIT_MAX))
    .option(NODE, NODE_SAID, nodeOption, VIA_DEFAULT)
    .option(...CA)
    .option(...JSON_OPTION)
    .action(async (userId: string, { rule, used, ...options }: SetOptions) => {
      const { setUsed } = await import('./users-command.ts');
      await setUsed(userId, { rule, used }, { ...options, print });
    });
  for (const [change, description] of Object.entries(CHANGES)) {
    const command = users
      .command(change)
      .description(description)
      .argument(...USER)
      .option(NODE, NODE_SAID, nodeOption, VIA_DEFAULT)
      .option(...CA)
      .option(...JSON_OPTION)
      .action(async (userId: string, { durationMillis, ...options }: ChangeOptions) => {
        const { changeUser } = await import('./users-command.ts');
        await changeUser(userId, { change: change as UserChange, durationMillis }, { ...options, print });
      });
    if (change === 'block') command.addOption(durationOption());
  }
}
