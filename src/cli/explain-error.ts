/** What a command says of an error on the terminal, in one sentence, and the code it exits with. It decides nothing else. */
import { CommanderError } from 'commander';
import { BackupError } from '../backup/backup-error.ts';
import { ConfigError } from '../config/config.ts';
import { ClusterCommandError } from './ask-node.ts';
import { ForeignStoreError } from '../../storage/errors.ts';
import { fileAdvice } from '../../storage/file-errors.ts';

/** What was to be checked was read, and is wrong: not the command, but what it found. */
export const EXIT_MISTAKES = 1;
/** As in sysexits.h. A wrong option, value or configuration: nothing was changed. */
export const EXIT_USAGE = 64;
/** An address is taken, or nobody listens there. Nothing was changed, and trying again may help. */
export const EXIT_UNAVAILABLE = 69;
/** The node stopped itself, or refused to start, because its disk or state cannot be trusted. */
export const EXIT_FATAL = 70;
/** It was accepted or may yet be, and is not done: waiting longer may be all it takes. */
export const EXIT_TEMPORARY = 75;

/** Of every command; some say of their own what their codes mean. */
export const EXIT_WORDS: Readonly<Record<number, string>> = {
  0: 'it is done, or all is well',
  [EXIT_MISTAKES]: 'what was looked at is wrong, or a request is denied',
  [EXIT_USAGE]: 'a wrong option, value or configuration, or a refusal; nothing was changed',
  [EXIT_UNAVAILABLE]: 'no node answers, or a port is taken; nothing was changed',
  [EXIT_FATAL]: 'the database or state of the node cannot be trusted',
  [EXIT_TEMPORARY]: 'it is not finished, or it is not known whether it was done',
};

/** The cluster that is to be started runs, or another one on its ports. */
export class AlreadyRunningError extends Error {
  readonly code = 'ALREADY_RUNNING';
  override readonly name = 'AlreadyRunningError';
}

/** A node of the cluster that is being started ended, for a reason that it told by its exit code. */
export class NodeEndedError extends Error {
  readonly code = 'NODE_ENDED';
  override readonly name = 'NodeEndedError';
  /** Null: a signal ended it. */
  readonly exitCode: number | null;

  constructor(message: string, exitCode: number | null) {
    super(message);
    this.exitCode = exitCode;
  }
}

const EXIT_OF_BACKUP: Readonly<Record<BackupError['what'], number>> = {
  damaged: EXIT_MISTAKES,
  foreign: EXIT_USAGE,
  unreachable: EXIT_UNAVAILABLE,
};

const EXIT_OF_OUTCOME: Readonly<Record<ClusterCommandError['outcome'], number>> = {
  refused: EXIT_USAGE,
  unreachable: EXIT_UNAVAILABLE,
  unfinished: EXIT_TEMPORARY,
};

export interface Explanation {
  readonly message: string;
  readonly exitCode: number;
}

export function explain(error: unknown): Explanation {
  if (error instanceof CommanderError)
    return { message: '', exitCode: error.exitCode === 0 ? 0 : EXIT_USAGE };
  if (error instanceof ConfigError || error instanceof ForeignStoreError)
    return { message: error.message, exitCode: EXIT_USAGE };
  if (error instanceof ClusterCommandError)
    return { message: error.message, exitCode: EXIT_OF_OUTCOME[error.outcome] };
  if (error instanceof BackupError) return { message: error.message, exitCode: EXIT_OF_BACKUP[error.what] };
  if (error instanceof NodeEndedError)
    return { message: error.message, exitCode: error.exitCode ?? EXIT_FATAL };
  if (error instanceof AlreadyRunningError) return { message: error.message, exitCode: EXIT_UNAVAILABLE };
  if (!(error instanceof Error)) return { message: String(error), exitCode: EXIT_FATAL };
  return explainListen(error) ?? { message: explainFile(error), exitCode: EXIT_FATAL };
}

/** The errors of files name them. */
function explainFile(error: Error): string {
  const advice = 'path' in error ? fileAdvice(error) : undefined;
  return advice === undefined ? error.message : `${error.message}: ${advice}`;
}

/** Node names the address and the port in the errors of `listen`, and in no others. */
function explainListen(error: Error & { syscall?: string; code?: string }): Explanation | undefined {
  if (error.syscall !== 'listen') return undefined;
  const { address, port } = error as { address?: string; port?: number };
  const where = `port ${port} on ${address}`;
  switch (error.code) {
    case 'EADDRINUSE':
      return {
        message:
          `${where} is in use by another program: stop that, or choose other ports in cluster.json (in a clone: ` +
          `\`npm start -- --base-port N\`, which moves a cluster that exists, too)`,
        exitCode: EXIT_UNAVAILABLE,
      };
    case 'EADDRNOTAVAIL':
      return { message: `${address} is no address of this machine; see cluster.json`, exitCode: EXIT_USAGE };
    case 'EACCES':
      return { message: `${where} needs privileges; choose one above 1023`, exitCode: EXIT_USAGE };
    default:
      return undefined;
  }
}
