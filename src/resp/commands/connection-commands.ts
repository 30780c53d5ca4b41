/** Commands about the connection itself: who speaks, in which version of the protocol, and whether anybody is there. */
import type { Call, Command } from '../command.ts';
import { wrongArity } from '../command-table.ts';
import { type ErrorReply, failed, mapOf, OK, type Reply, simple, SYNTAX_ERROR } from '../reply.ts';
import type { RespVersion } from '../reply-writer.ts';
import { namedAs } from './client-commands.ts';

const FLAGS = ['noscript', 'loading', 'stale', 'fast'];
const NO_PASSWORD = failed(
  'AUTH <password> called without any password configured for the default user. Are you sure your configuration is correct?',
);
const WRONG_PASSWORD: ErrorReply = {
  kind: 'error',
  text: 'WRONGPASS invalid username-password pair or user is disabled.',
};

export const CONNECTION_COMMANDS: readonly Command[] = [
  {
    name: 'PING',
    arity: -1,
    flags: ['fast'],
    key: 0,
    summary: 'Answers, so that one sees it does',
    run: ping,
  },
  {
    name: 'ECHO',
    arity: 2,
    flags: ['loading', 'stale', 'fast'],
    key: 0,
    summary: 'Returns its argument',
    run: echo,
  },
  {
    name: 'HELLO',
    arity: -1,
    flags: [...FLAGS, 'no_auth'],
    key: 0,
    summary: 'Chooses the version of the protocol, and says who answers',
    run: hello,
  },
  {
    name: 'AUTH',
    arity: -2,
    flags: [...FLAGS, 'no_auth'],
    key: 0,
    summary: 'Refused: there are no passwords',
    run: auth,
  },
  {
    name: 'SELECT',
    arity: 2,
    flags: ['loading', 'stale', 'fast'],
    key: 0,
    summary: 'There is one database, 0',
    run: select,
  },
  {
    name: 'QUIT',
    arity: -1,
    flags: [...FLAGS, 'no_auth'],
    key: 0,
    summary: 'Ends the connection when all before it is answered',
    run: ({ session }) => {
      session.isLeaving = true;
      return OK;
    },
  },
  {
    name: 'RESET',
    arity: 1,
    flags: [...FLAGS, 'no_auth'],
    key: 0,
    summary: 'Makes the connection as it was when it was new',
    run: ({ session }) => {
      session.reset();
      return simple('RESET');
    },
  },
  // Which node is asked makes no difference, so neither do these.
  ...['READONLY', 'READWRITE'].map((name): Command => ({
    name,
    arity: 1,
    flags: ['loading', 'stale', 'fast'],
    key: 0,
    summary: 'Accepted',
    run: () => OK,
  })),
];

function ping({ args }: Call): Reply {
  if (args.count === 1) return simple('PONG');
  if (args.count > 2) return wrongArity('ping');
  return args.text(1) ?? failed('the message must be UTF-8');
}

function echo({ args }: Call): Reply {
  return args.text(1) ?? failed('the message must be UTF-8');
}

/** `HELLO [2|3 [AUTH user password] [SETNAME name]]`. Changes nothing unless all of it can be done. */
function hello({ args, session, door }: Call): Reply {
  let version: RespVersion = session.version;
  let name: string | undefined;
  if (args.count > 1) {
    const asked = args.integer(1);
    if (Number.isNaN(asked)) return failed('Protocol version is not an integer or out of range');
    if (asked !== 2 && asked !== 3) {
      return { kind: 'error', text: 'NOPROTO unsupported protocol version' };
    }
    version = asked;
  }
  for (let i = 2; i < args.count; i += 1) {
    if (args.is(i, 'AUTH') && i + 2 < args.count) {
      if (!args.is(i + 1, 'DEFAULT')) return WRONG_PASSWORD;
      i += 2;
    } else if (args.is(i, 'SETNAME') && i + 1 < args.count) {
      const named = namedAs(args, i + 1);
      if (typeof named !== 'string') return named;
      name = named;
      i += 1;
    } else return SYNTAX_ERROR;
  }
  session.version = version;
  session.name = name ?? session.name;
  return mapOf({
    server: 'quorate',
    version: door.version,
    proto: version,
    id: session.id,
    mode: 'cluster',
    role: 'master',
    modules: [],
  });
}

/** The default user needs no password, so any is right for it, as with Redis. */
function auth({ args }: Call): Reply {
  if (args.count === 2) return NO_PASSWORD;
  if (args.count > 3) return SYNTAX_ERROR;
  return args.is(1, 'DEFAULT') ? OK : WRONG_PASSWORD;
}

function select({ args }: Call): Reply {
  const index = args.integer(1);
  if (Number.isNaN(index)) return failed('invalid DB index');
  return index === 0 ? OK : failed('SELECT is not allowed in cluster mode');
}
