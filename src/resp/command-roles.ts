/**
 * Which roles may run which command, in one table, and whether a connection may run one now: by its token, and by what it sent before. A role of admin may run all of them;
 * a command that is not here is for it alone. Without a token, a client of a closed cluster can show one, and leave.
 */
import type { AccessBehindDoor, Role } from '../api/token.ts';
import { ROLES } from '../api/token.ts';
import type { Command } from './command.ts';
import type { CommandArguments } from './command-arguments.ts';
import { type ErrorReply, error, failed } from './reply.ts';
import type { Session } from './session.ts';

type Roles = 'anybody' | readonly Role[];

const DECIDE: Roles = ['decide'];
const WHO_ASKS: Roles = ['decide', 'read'];

export const COMMAND_ROLES: Readonly<Record<string, Roles>> = {
  AUTH: 'anybody',
  HELLO: 'anybody',
  PING: 'anybody',
  QUIT: 'anybody',
  RESET: 'anybody',
  ALLOW: DECIDE,
  MATCH: DECIDE,
  'CL.THROTTLE': DECIDE,
  REFUND: DECIDE,
  LOOK: WHO_ASKS,
  INFO: WHO_ASKS,
  DBSIZE: WHO_ASKS,
  CONFIG: WHO_ASKS,
  ECHO: WHO_ASKS,
  SELECT: WHO_ASKS,
  READONLY: WHO_ASKS,
  READWRITE: WHO_ASKS,
  CLIENT: WHO_ASKS,
  // It tells of the connections of others.
  'CLIENT|LIST': ['read'],
  CLUSTER: WHO_ASKS,
  ASKING: WHO_ASKS,
  // What is kept until EXEC is asked for its role when it comes, and when it runs.
  MULTI: WHO_ASKS,
  EXEC: WHO_ASKS,
  DISCARD: WHO_ASKS,
  SUBSCRIBE: WHO_ASKS,
  UNSUBSCRIBE: WHO_ASKS,
  COMMAND: WHO_ASKS,
};

const NOAUTH = error('NOAUTH Authentication required.');
export const LOADING = error('LOADING this node does not know yet which tokens are valid; ask again');

/** Why `session` may not run this command now; undefined: it may. */
export function refusalOfCommand(
  command: Command,
  args: CommandArguments,
  session: Session,
  access: AccessBehindDoor,
): ErrorReply | undefined {
  const mode = access.mode();
  if (mode === 'open') return undefined;
  const name = nameOf(command, args);
  const roles = COMMAND_ROLES[name] ?? COMMAND_ROLES[command.name] ?? [];
  if (roles === 'anybody') return undefined;
  if (mode === 'unknown') return LOADING;
  const caller = callerOfSession(session, access);
  if (caller === undefined) return NOAUTH;
  if (caller.role === 'admin' || roles.includes(caller.role)) return undefined;
  const needed = ROLES.filter((role) => role === 'admin' || roles.includes(role)).join(' or ');
  const shown = name.toLowerCase();
  return error(`NOPERM this token has role ${caller.role}, and '${shown}' needs ${needed}`);
}

/** Why it does not run after `MULTI` or `SUBSCRIBE`; undefined: it may. */
export function refusalOfState(command: Command, session: Session): ErrorReply | undefined {
  const { name, inTransaction, whileSubscribed } = command;
  if (inTransaction === 'refused' && session.transaction !== undefined) {
    return failed(`${name} is not allowed in transactions`);
  }
  if (!session.isSubscriber || whileSubscribed === true) return undefined;
  const shown = name.toLowerCase();
  return failed(
    `Can't execute '${shown}': only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / QUIT / RESET are allowed in this context`,
  );
}

/** By its subcommand where that has a row of its own. */
function nameOf({ name, subcommands }: Command, args: CommandArguments): string {
  const sub = subcommands?.get(args, 1);
  return sub === undefined ? name : `${name}|${sub.name}`;
}

/** Looked for at every command: the token may have been revoked since it was shown. */
export function callerOfSession(
  { tokenId }: Session,
  access: AccessBehindDoor,
): ReturnType<AccessBehindDoor['callerById']> {
  return tokenId === undefined ? undefined : access.callerById(tokenId);
}
