/**
 * `MULTI`, `EXEC` and `DISCARD`, which clients put around a pipeline. `EXEC` returns an array of the commands'
 * answers. Each command is still decided on its own, so some may be granted and others denied. There is no `WATCH`.
 */
import type { Call, Command } from '../command.ts';
import { error, failed, OK, type Reply } from '../reply.ts';
import { Transaction } from '../transaction.ts';

const FLAGS = ['noscript', 'loading', 'stale', 'fast'];

/** The commands of transactions. */
export const TRANSACTION_COMMANDS: readonly Command[] = [
  command('MULTI', 'Keeps the commands that follow until EXEC', multi),
  command('EXEC', 'Runs the commands since MULTI. Returns an array of their answers', exec),
  command('DISCARD', 'Forgets the commands since MULTI', discard),
];

function command(name: string, summary: string, run: (call: Call) => Reply): Command {
  return { name, arity: 1, flags: FLAGS, key: 0, summary, inTransaction: 'runs', run };
}

function multi({ session, listener }: Call): Reply {
  if (session.transaction !== undefined) return failed('MULTI calls can not be nested');
  session.transaction = new Transaction(listener.monotonicMillis());
  return OK;
}

function exec({ session }: Call): Reply {
  const { transaction } = session;
  if (transaction === undefined) return failed('EXEC without MULTI');
  if (!transaction.isRefused) return { kind: 'header', count: transaction.start() };
  session.transaction = undefined;
  return error('EXECABORT Transaction discarded because of previous errors.');
}

function discard({ session }: Call): Reply {
  if (session.transaction === undefined) return failed('DISCARD without MULTI');
  session.transaction = undefined;
  return OK;
}
