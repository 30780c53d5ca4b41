/** The options of `quorate tokens`. */
import { type Command, Option } from 'commander';
import { ROLES, TOKEN_NAME_BYTES_MAX, type TokenAsked } from '../api/token.ts';
import { type ClusterOptions, nodeOf, withCluster } from './asked-cluster.ts';
import { explained } from './command-help.ts';
import { EXIT_TEMPORARY } from './explain-error.ts';
import { JSON_OPTION, nameOption, tokenIdOption } from './options.ts';

const EXIT_OF_TOKENS = { done: 0, pending: EXIT_TEMPORARY } as const;
const EXITS = { 0: 'every node knows it', 75: 'it is done, and some node has not heard of it yet' };

interface TokensOptions extends ClusterOptions {
  readonly json?: true;
}

/** Adds `tokens` to the program. */
export function addTokensCommands(program: Command, print: (line: string) => void): void {
  const tokens = explained(program.command('tokens'), {
    does: 'make, list and revoke the tokens of a running cluster',
    examples: ['quorate tokens list'],
  });
  withCluster(
    explained(tokens.command('create'), {
      does: 'make a token and print it once; the first one of role admin closes the cluster',
      exits: EXITS,
      examples: ['quorate tokens create --role decide --name gateway'],
    }),
  )
    .addOption(new Option('--role <role>', 'what it may ask').choices(ROLES).makeOptionMandatory())
    .option(
      '--name <text>',
      `what people call it, 1 to ${TOKEN_NAME_BYTES_MAX} bytes (default: its role)`,
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
      does: 'revoke a token: no listener takes it when this command has ended with 0',
      exits: EXITS,
      examples: ['quorate tokens revoke 4gkt2mqz'],
    }),
  )
    .argument('<id>', 'the 8 characters of a token, as they are listed', tokenIdOption)
    .option('--open', 'also the last one of role admin: then everybody who reaches a node may ask')
    .option(...JSON_OPTION)
    .action(async (id: string, { open = false, ...options }: TokensOptions & { open?: boolean }) => {
      const { revokeToken } = await import('./tokens-command.ts');
      const asked = { ...options, node: await nodeOf(options), isOpenAllowed: open, print };
      process.exitCode = EXIT_OF_TOKENS[await revokeToken(id, asked)];
    });
}
