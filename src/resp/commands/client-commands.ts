/** `CLIENT`: sets and shows the properties of connections. */
import type { Call, Command } from '../command.ts';
import type { CommandArguments } from '../command-arguments.ts';
import { container } from '../command-table.ts';
import { type ErrorReply, failed, OK, type Reply, SYNTAX_ERROR } from '../reply.ts';

const FLAGS = ['noscript', 'loading', 'stale'];
/** The longest name of a connection in bytes; it is kept as long as the connection. */
const NAME_BYTES_MAX = 128;
const NO_TRACKING = failed(
  'CLIENT TRACKING takes OFF, ON OPTIN and NOLOOP: changes of keys are not reported',
);
const PRINTABLE = /^[!-~]*$/;

function subcommand(name: string, arity: number, summary: string, run: (call: Call) => Reply): Command {
  return { name, arity, flags: FLAGS, key: 0, summary, run };
}

/** The command `CLIENT`. */
export const CLIENT = container(
  { name: 'CLIENT', arity: -2, flags: FLAGS, summary: 'About the connections of clients' },
  [
    subcommand('ID', 2, 'The id of this connection', ({ session }) => session.id),
    subcommand('GETNAME', 2, 'The name of this connection', ({ session }) => session.name || null),
    subcommand('SETNAME', 3, 'Names this connection', ({ args, session }) => {
      const name = namedAs(args, 2);
      if (typeof name !== 'string') return name;
      session.name = name;
      return OK;
    }),
    subcommand('SETINFO', 4, 'Says which library the client uses', setInfo),
    subcommand(
      'INFO',
      2,
      'Describes this connection',
      ({ session, listener }) => `${session.describe(listener.monotonicMillis())}\n`,
    ),
    subcommand('LIST', -2, 'Describes all connections', ({ listener }) => {
      const nowMillis = listener.monotonicMillis();
      return [...listener.sessions()].map((session) => `${session.describe(nowMillis)}\n`).join('');
    }),
    subcommand('NO-EVICT', 3, 'Accepted: no connection is evicted', onOrOff),
    subcommand('NO-TOUCH', 3, 'Accepted: there is nothing to touch', onOrOff),
    subcommand('TRACKING', -3, 'OFF, or ON with OPTIN: changes of keys are not reported', tracking),
    subcommand('REPLY', 3, 'Every command is answered', ({ args }) =>
      args.is(2, 'ON') ? OK : failed('CLIENT REPLY takes ON only: every command is answered'),
    ),
  ],
);

function onOrOff({ args }: Call): Reply {
  return args.is(2, 'ON') || args.is(2, 'OFF') ? OK : SYNTAX_ERROR;
}

/**
 * Accepts only tracking that never has to report changes: with OPTIN no key is tracked until `CLIENT CACHING`, which
 * is refused.
 */
function tracking({ args }: Call): Reply {
  if (args.is(2, 'OFF') && args.count === 3) return OK;
  if (!args.is(2, 'ON')) return SYNTAX_ERROR;
  let hasOptIn = false;
  for (let i = 3; i < args.count; i += 1) {
    hasOptIn ||= args.is(i, 'OPTIN');
    if (!args.is(i, 'OPTIN') && !args.is(i, 'NOLOOP')) return NO_TRACKING;
  }
  return hasOptIn ? OK : NO_TRACKING;
}

function setInfo({ args, session }: Call): Reply {
  const value = namedAs(args, 3);
  if (args.is(2, 'LIB-NAME')) {
    if (typeof value !== 'string')
      return failed('lib-name cannot contain spaces, newlines or special characters.');
    session.libraryName = value;
    return OK;
  }
  if (args.is(2, 'LIB-VER')) {
    if (typeof value !== 'string')
      return failed('lib-ver cannot contain spaces, newlines or special characters.');
    session.libraryVersion = value;
    return OK;
  }
  return failed(`Unrecognized option '${args.shown(2, NAME_BYTES_MAX)}'`);
}

/**
 * Argument `index` as the name of a connection. It becomes part of a line that clients split at spaces, so it must
 * not contain any.
 */
export function namedAs(args: CommandArguments, index: number): string | ErrorReply {
  const name = args.lengthOf(index) <= NAME_BYTES_MAX ? args.text(index) : undefined;
  if (name !== undefined && PRINTABLE.test(name)) return name;
  return failed('Client names cannot contain spaces, newlines or special characters.');
}
