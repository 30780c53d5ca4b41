/** The `quorate` command with all its subcommands. */
import type { Command } from 'commander';
import { addBackupCommands } from './backup-program.ts';
import { addCertsCommands } from './certs-commands.ts';
import { explained, newCommand } from './command-line.ts';
import { addCompletionCommand } from './completion-command.ts';
import { addContainerCommand } from './container-command.ts';
import { addCustomersCommands } from './customers-program.ts';
import { addNodesCommands } from './nodes-program.ts';
import { addOperationsCommands, addUpgradeCommands } from './operations-program.ts';
import { addInitCommand, addJoinCommand } from './prepare-program.ts';
import { addRulesCommands } from './rules-program.ts';
import { addNodeCommand } from './run-node.ts';
import { showTokenOf } from './node-fetch.ts';
import { addTokensCommands } from './tokens-program.ts';
import { addUsersCommands } from './users-program.ts';
import { EXIT_WORDS } from './explain-error.ts';

const print = (line: string): void => console.log(line);

/** Builds the command. @param version the version of the package */
export function quorateProgram(version: string): Command {
  const program = explained(newCommand('quorate'), {
    does: 'A rate limiter cluster that never grants more than a limit allows.',
    exits: EXIT_WORDS,
    examples: ['quorate init', 'quorate node 1', 'quorate status'],
  })
    .version(version, '--version', 'print the version')
    .configureHelp({ showGlobalOptions: true })
    .option('--token-file <file>', 'a file with the token to send to nodes, instead of QUORATE_TOKEN')
    .hook('preAction', async (command) => {
      const { tokenFile } = command.opts<{ tokenFile?: string }>();
      if (tokenFile !== undefined) await showTokenOf(tokenFile);
    });
  addInitCommand(program, print);
  addNodeCommand(program, version);
  addContainerCommand(program, version, print);
  addJoinCommand(program, print);
  addCertsCommands(program);
  addNodesCommands(program, print);
  addRulesCommands(program, print);
  addUsersCommands(program, print);
  addCustomersCommands(program, print);
  addTokensCommands(program, print);
  addBackupCommands(program, print);
  addOperationsCommands(program, print);
  addUpgradeCommands(program, print);
  addCompletionCommand(program, print);
  return program;
}
