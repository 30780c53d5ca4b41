/** The table of all commands of the RESP listener. */
import type { Command } from '../command.ts';
import { CommandTable } from '../command-table.ts';
import { ALLOW, MATCH } from './grant-commands.ts';
import { CHANNEL_COMMANDS } from './channel-commands.ts';
import { CLIENT } from './client-commands.ts';
import { ASKING, CLUSTER } from './cluster-commands.ts';
import { COMMAND } from './command-command.ts';
import { CONNECTION_COMMANDS } from './connection-commands.ts';
import { SERVER_COMMANDS } from './server-commands.ts';
import { THROTTLE } from './throttle-command.ts';
import { TRANSACTION_COMMANDS } from './transaction-commands.ts';
import { USER_COMMANDS } from './user-commands.ts';

const COMMANDS: readonly Command[] = [
  ALLOW,
  MATCH,
  THROTTLE,
  ...USER_COMMANDS,
  ...CONNECTION_COMMANDS,
  ...TRANSACTION_COMMANDS,
  ...CHANNEL_COMMANDS,
  ...SERVER_COMMANDS,
  CLIENT,
  CLUSTER,
  ASKING,
  COMMAND,
];

/** All commands. */
export const COMMAND_TABLE = new CommandTable(COMMANDS);
