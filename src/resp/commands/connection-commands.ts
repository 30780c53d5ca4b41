/** Commands about the connection itself: authentication, protocol version, `PING`, `QUIT` and so on. */
import type { Call, Command } from '../command.ts';
import { wrongArity } from '../command-table.ts';
import { callerOfSession, LOADING } from '../command-roles.ts';
import { error, type ErrorReply, failed, mapOf, OK, type Reply, simple, SYNTAX_ERROR } from '../reply.ts';
import type { RespVersion } from '../reply-writer.ts';
import { namedAs } from './client-commands.ts';

const FLAGS = ['noscript', 'loading', 'stale', 'fast'];
const NO_PASSWORD = failed(
  'AUTH <password> called without any password configured for the default user. Are you sure your configuration is correct?',
);
const WRONG_PASSWORD = error('WRONGPASS invalid username-password pair or user is disabled.');
const HELLO_WITHOUT_AUTH = error(
  'NOAUTH HELLO must be called with the client already authenticated, otherwise the HELLO <proto> AUTH <user> <pass> option can be used to authenticate the client and select the RESP protocol version at the same time',
);
/** The most wrong tokens on one connection; then it is closed. */
export const AUTH_FAILURES_MAX = 10;

/** The commands about the connection. */
export const CONNECTION_COMMANDS: readonly Command[] = [
  {
    name: 'PING',
    arity: -1,
    flags: ['fast'],
    key: 0,
    summary: 'Shows that the connection works',
    whileSubscribed: true,
    run: ping,
  },
  {
    name: 'ECHO',
    arity: 2,
    flags: ['loading', 'stale', 'fast'],
    key: 0,
    summary: 'Returns its argument',
    run: ({ args }) => args.bytes(1),
  },
  {
    name: 'HELLO',
    arity: -1,
    flags: [...FLAGS, 'no_auth'],
    key: 0,
    summary: 'Selects the protocol version, and describes the server',
    run: hello,
  },
  {
    name: 'AUTH',
    arity: -2,
    flags: [...FLAGS, 'no_auth'],
    key: 0,
    summary: 'Authenticates with a token, which is the password of the default user',
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
    summary: 'Closes the connection after all earlier answers',
    inTransaction: 'runs',
    whileSubscribed: true,
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
    summary: 'Resets the connection to the state of a new one',
    inTransaction: 'runs',
    whileSubscribed: true,
    run: ({ session }) => {
      session.reset();
      return simple('RESET');
    },
  },
  // They choose the kind of node, and here all nodes answer alike.
  ...['READONLY', 'READWRITE'].map((name): Command => ({
    name,
    arity: 1,
    flags: ['loading', 'stale', 'fast'],
    key: 0,
    summary: 'Accepted',
    run: () => OK,
  })),
];

function ping({ args, session }: Call): Reply {
  if (args.count > 2) return wrongArity('ping');
  if (session.isSubscriber) return ['pong', args.count === 1 ? '' : args.bytes(1)];
  if (args.count === 1) return simple('PONG');
  return args.bytes(1);
}

/** `HELLO [2|3 [AUTH default token] [SETNAME name]]`. Either all of it succeeds, or nothing changes. */
function hello(call: Call): Reply {
  const { args, session, listener } = call;
  const { access } = listener.node;
  let shown: Exclude<Shown, ErrorReply> | undefined;
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
      const known = showToken(call, i + 1, i + 2);
      if ('kind' in known) return known;
      shown = known;
      i += 2;
    } else if (args.is(i, 'SETNAME') && i + 1 < args.count) {
      const named = namedAs(args, i + 1);
      if (typeof named !== 'string') return named;
      name = named;
      i += 1;
    } else return SYNTAX_ERROR;
  }
  const isKnown = shown !== undefined || callerOfSession(session, access) !== undefined;
  if (access.mode() !== 'open' && !isKnown) return HELLO_WITHOUT_AUTH;
  session.tokenId = shown?.id ?? session.tokenId;
  session.version = version;
  session.name = name ?? session.name;
  return mapOf({
    server: 'quorate',
    version: listener.version,
    proto: version,
    id: session.id,
    mode: 'cluster',
    role: 'master',
    modules: [],
  });
}

/** The result of authentication. `id` is that of the token; undefined if no token is needed. */
type Shown = { readonly id: string | undefined } | ErrorReply;

/**
 * Authenticates with a token.
 *
 * @param user the index of the argument with the user's name, which must be `default`; 0: there is none
 * @param password the index of the argument with the token
 */
function showToken({ args, session, listener }: Call, user: number, password: number): Shown {
  const { access } = listener.node;
  const mode = access.mode();
  const isDefault = user === 0 || args.is(user, 'DEFAULT');
  const caller = isDefault ? access.callerOf(args.text(password) ?? '') : undefined;
  // A valid token is kept even while the cluster is open, so that its client stays authenticated if the cluster is
  // closed.
  if (caller !== undefined) return { id: caller.id };
  if (mode === 'unknown') return LOADING;
  if (mode === 'open') {
    if (user === 0) return NO_PASSWORD;
    // The default user needs no password, so any password is accepted, as in Redis.
    return isDefault ? { id: undefined } : WRONG_PASSWORD;
  }
  access.failed('resp');
  session.authFailures += 1;
  session.isLeaving ||= session.authFailures >= AUTH_FAILURES_MAX;
  return WRONG_PASSWORD;
}

/** `AUTH token`, `AUTH default token`. */
function auth(call: Call): Reply {
  const { args, session } = call;
  if (args.count > 3) return SYNTAX_ERROR;
  const shown = args.count === 2 ? showToken(call, 0, 1) : showToken(call, 1, 2);
  if ('kind' in shown) return shown;
  session.tokenId = shown.id;
  return OK;
}

function select({ args }: Call): Reply {
  const index = args.integer(1);
  if (Number.isNaN(index)) return failed('invalid DB index');
  return index === 0 ? OK : failed('SELECT is not allowed in cluster mode');
}
