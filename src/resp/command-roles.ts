/**
 * The table of which roles may run which command, and the check of whether a connection may run a command now. The
 * role `admin` may run all commands; a command that is missing here is only for it. Without a token, a client of a
 * closed cluster can only send one, or leave.
 */
import type { AccessApi, Role } from '../api/token.ts';
import { ROLES } from '../api/token.ts';
import type { Command } from './command.ts';
import type { CommandArguments } from './command-arguments.ts';
import { type ErrorReply, error, failed } from './reply.ts';
import type { Session } from './session.ts';

type Roles = 'anybody' | readonly Role[];

const DECIDE: Roles = ['decide'];
const WHO_ASKS: Roles = ['decide', 'read'];

/** The roles by command, or by `COMMAND|SUBCOMMAND`. */
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
  PEEK: WHO_ASKS,
  INFO: WHO_ASKS,
  DBSIZE: WHO_ASKS,
  CONFIG: WHO_ASKS,
  ECHO: WHO_ASKS,
  SELECT: WHO_ASKS,
  READONLY: WHO_ASKS,
  READWRITE: WHO_ASKS,
  CLIENT: WHO_ASKS,
  // It shows the connections of other clients.
  'CLIENT|LIST': ['read'],
  CLUSTER: WHO_ASKS,
  ASKING: WHO_ASKS,
  // The commands in a transaction are checked themselves, when they are queued and when they run.
  MULTI: WHO_ASKS,
  EXEC: WHO_ASKS,
  DISCARD: WHO_ASKS,
  SUBSCRIBE: WHO_ASKS,
  UNSUBSCRIBE: WHO_ASKS,
  COMMAND: WHO_ASKS,
};

const NOAUTH = error('NOAUTH Authentication required.');
/** The refusal while this node does not know the tokens yet. */
export const LOADING = error('LOADING this node does not know yet which tokens are valid; ask again');

/** Why `session` may not run this command because of its token. Undefined if it may. */
export function refusalOfCommand(
  command: Command,
  args: CommandArguments,
  session: Session,
  access: AccessApi,
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

/** Why a command may not run because of an earlier `MULTI` or `SUBSCRIBE`. Undefined if it may. */
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

/** The name of a command, with its subcommand if that has its own row in the table. */
function nameOf({ name, subcommands }: Command, args: CommandArguments): string {
  const sub = subcommands?.get(args, 1);
  return sub === undefined ? name : `${name}|${sub.name}`;
}

/**
 * The caller of a session. It is read for every command, because the token may have been revoked in the
 * meantime.
 */
export function callerOfSession(
  { tokenId }: Session,
  access: AccessApi,
): ReturnType<AccessApi['callerById']> {
  return tokenId === undefined ? undefined : access.callerById(tokenId);
}
