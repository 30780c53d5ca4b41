/** The options of `quorate tokens`. */
import { type Command, Option } from 'commander';
import { ROLES, TOKEN_NAME_BYTES_MAX, type TokenAsked } from '../api/token.ts';
import { type ClusterOptions, nodeOf, withCluster } from './asked-cluster.ts';
import { explained } from './command-line.ts';
import { EXIT_TEMPORARY } from './explain-error.ts';
import { JSON_OPTION, nameOption, tokenIdOption } from './options.ts';

const EXIT_OF_TOKENS = { done: 0, pending: EXIT_TEMPORARY } as const;
const EXITS = { 0: 'every node knows it', 75: 'done, but some nodes do not know it yet' };

interface TokensOptions extends ClusterOptions {
  readonly json?: true;
}

/** Adds `tokens` to the program. */
export function addTokensCommands(program: Command, print: (line: string) => void): void {
  const tokens = explained(program.command('tokens'), {
    does: 'create, list and revoke the tokens of a running cluster',
    examples: ['quorate tokens list'],
  });
  withCluster(
    explained(tokens.command('create'), {
      does: 'create a token and print it once; from the first token of role admin on, every request needs a token',
      exits: EXITS,
      examples: ['quorate tokens create --role decide --name gateway'],
    }),
  )
    .addOption(new Option('--role <role>', 'what it allows').choices(ROLES).makeOptionMandatory())
    .option(
      '--name <text>',
      `a name for people, 1 to ${TOKEN_NAME_BYTES_MAX} bytes (default: its role)`,
      nameOption,
    )
    .option(...JSON_OPTION)
    .action(
      async ({
        role,
        name = role,
        ...options
      }: TokensOptions & Pick<TokenAsked, 'role'> & { name?: string }) => {
        const { createToken } = await import('./tokens-command.ts');
        const asked = { ...options, node: await nodeOf(options), print };
        process.exitCode = EXIT_OF_TOKENS[await createToken({ role, name }, asked)];
      },
    );
  withCluster(
    explained(tokens.command('list'), {
      does: 'list the tokens, without their secrets',
      examples: ['quorate tokens list'],
    }),
  )
    .option(...JSON_OPTION)
    .action(async (options: TokensOptions) => {
      const { listTokens } = await import('./tokens-command.ts');
      await listTokens({ ...options, node: await nodeOf(options), print });
    });
  withCluster(
    explained(tokens.command('revoke'), {
      does: 'revoke a token: after exit code 0 no listener accepts it',
      exits: EXITS,
      examples: ['quorate tokens revoke 4gkt2mqz'],
    }),
  )
    .argument('<id>', 'the id of a token, 8 characters, as listed', tokenIdOption)
    .option('--open', 'revoke even the last token of role admin: then anybody who reaches a node can use it')
    .option(...JSON_OPTION)
    .action(async (id: string, { open = false, ...options }: TokensOptions & { open?: boolean }) => {
      const { revokeToken } = await import('./tokens-command.ts');
      const asked = { ...options, node: await nodeOf(options), isOpenAllowed: open, print };
      process.exitCode = EXIT_OF_TOKENS[await revokeToken(id, asked)];
    });
}
