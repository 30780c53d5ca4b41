/** Turns an error of a command into one sentence for the terminal and an exit code. */
import { CommanderError } from 'commander';
import { BackupError } from '../backup/backup-error.ts';
import { ConfigError } from '../config/config.ts';
import { ClusterCommandError } from './ask-node.ts';
import { ForeignStoreError } from '../../storage/errors.ts';
import { fileAdvice } from '../../storage/file-errors.ts';

/** The command worked, and what it checked is wrong. */
export const EXIT_MISTAKES = 1;
/** As in sysexits.h. A wrong option, value or configuration. Nothing was changed. */
export const EXIT_USAGE = 64;
/** A port is taken, or no node answers. Nothing was changed, and a retry may help. */
export const EXIT_UNAVAILABLE = 69;
/** The node stopped, or refused to start, because its disk or its state cannot be trusted. */
export const EXIT_FATAL = 70;
/** The change was accepted, or may have been, and is not finished. Waiting longer may be enough. */
export const EXIT_TEMPORARY = 75;

/** The meaning of the exit codes for every command. Some commands replace a text by a more exact one. */
export const EXIT_WORDS: Readonly<Record<number, string>> = {
  0: 'done, or no problem found',
  [EXIT_MISTAKES]: 'a check found a problem, or a request was denied',
  [EXIT_USAGE]: 'a wrong option, value or configuration, or the cluster refused; nothing was changed',
  [EXIT_UNAVAILABLE]: 'no node answers, or a port is taken; nothing was changed',
  [EXIT_FATAL]: 'the database or state of the node cannot be trusted',
  [EXIT_TEMPORARY]: 'not finished, or it is unknown whether the change was made',
};

/** The cluster to start is running already, or another one is using its ports. */
export class AlreadyRunningError extends Error {
  readonly code = 'ALREADY_RUNNING';
  override readonly name = 'AlreadyRunningError';
}

/** A node ended while the cluster was starting. Its exit code gives the reason. */
export class NodeEndedError extends Error {
  readonly code = 'NODE_ENDED';
  override readonly name = 'NodeEndedError';
  /** Null: a signal ended the node. */
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

/** The message to print, and the exit code. */
export interface Explanation {
  readonly message: string;
  readonly exitCode: number;
}

/** Explains any error. */
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

/** Node's errors about files contain the path. */
function explainFile(error: Error): string {
  const advice = 'path' in error ? fileAdvice(error) : undefined;
  return advice === undefined ? error.message : `${error.message}: ${advice}`;
}

/** Only errors of `listen` have both an address and a port. */
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
      return {
        message: `${address} is not an address of this machine; check cluster.json`,
        exitCode: EXIT_USAGE,
      };
    case 'EACCES':
      return { message: `${where} needs privileges; choose a port above 1023`, exitCode: EXIT_USAGE };
    default:
      return undefined;
  }
}
