/** `quorate tokens`: what the command line takes, and what it asks for. */
import { type Command, Option } from 'commander';
import { ROLES, type TokenAsked } from '../api/token.ts';
import { CA } from './ca-option.ts';
import { EXIT_TEMPORARY } from './explain-error.ts';
import { JSON_OPTION, nameOption, NODE, nodeOption, VIA_DEFAULT } from './options.ts';

const EXIT_OF_TOKENS = { done: 0, pending: EXIT_TEMPORARY } as const;

interface TokensOptions {
  readonly node: string;
  readonly json?: true;
}

export function addTokensCommands(program: Command, print: (line: string) => void): void {
  const tokens = program
    .command('tokens')
    .description('make, list and revoke the tokens of a running cluster');
  tokens
    .command('create')
    .description('make a token and print it once; the first one of role admin closes the cluster')
    .addOption(new Option('--role <role>', 'what it may ask').choices(ROLES).makeOptionMandatory())
    .option('--name <text>', 'for people, at most 64 bytes (default: its role)', nameOption)
    .option(NODE, 'a node of the cluster', nodeOption, VIA_DEFAULT)
    .option(...CA)
    .option(...JSON_OPTION)
    .action(
      async ({
        role,
        name = role,
        ...options
      }: TokensOptions & Pick<TokenAsked, 'role'> & { name?: string }) => {
        const { createToken } = await import('./tokens-command.ts');
        process.exitCode = EXIT_OF_TOKENS[await createToken({ role, name }, { ...options, print })];
      },
    );
  tokens
    .command('list')
    .description('list the tokens, without their secrets')
    .option(NODE, 'a node of the cluster', nodeOption, VIA_DEFAULT)
    .option(...CA)
    .option(...JSON_OPTION)
    .action(async (options: TokensOptions) => {
      const { listTokens } = await import('./tokens-command.ts');
      await listTokens({ ...options, print });
    });
  tokens
    .command('revoke')
    .description('revoke a token: no door takes it when this command has ended with 0')
    .argument('<id>', 'its 8 characters, as they are listed')
    .option('--open', 'also if it is the last one of role admin: whoever reaches a door may ask then')
    .option(NODE, 'a node of the cluster', nodeOption, VIA_DEFAULT)
    .option(...CA)
    .option(...JSON_OPTION)
    .action(async (id: string, { open = false, ...options }: TokensOptions & { open?: boolean }) => {
      const { revokeToken } = await import('./tokens-command.ts');
      process.exitCode = EXIT_OF_TOKENS[await revokeToken(id, { ...options, isOpenAllowed: open, print })];
    });
}
