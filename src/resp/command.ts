/**
 * A command: its entry in the table, and the interface through which it uses its connection and its listener.
 */
import type { MonotonicClock } from '../api/clocks.ts';
import type { AskAnswer, Question } from '../api/question.ts';
import type { NodeApi } from '../api/api-listener.ts';
import type { ALLOW_STATUS } from '../api/refusals.ts';
import type { AnswerFormat } from './answer-queue.ts';
import type { CommandArguments } from './command-arguments.ts';
import type { Reply } from './reply.ts';
import type { KeptForAll } from './kept-bytes.ts';
import type { Session } from './session.ts';

/** The counters of the listener, since the node started. */
export interface ListenerCounts {
  connections: number;
  /** Connections that were refused because there were too many. */
  rejected: number;
  commands: number;
  /** The answers to requests for a grant, by outcome. */
  readonly answers: Record<keyof typeof ALLOW_STATUS, number>;
}

/** The state of the listener, which all its connections use. */
export interface ListenerState extends MonotonicClock {
  readonly node: NodeApi;
  /** The release of the package. */
  readonly version: string;
  /** When the listener was created, on the monotonic clock. */
  readonly startedMillis: number;
  readonly port: () => number;
  readonly connectionsMax: number;
  /** The bytes kept for all connections together: of unfinished commands, and of answers that were not read. */
  readonly kept: KeptForAll;
  readonly counts: ListenerCounts;
  readonly sessions: () => Iterable<Session>;
  readonly commands: Commands;
}

/** Commands by name (see `CommandTable`). */
export interface Commands {
  readonly all: readonly Command[];
  /** The command that argument `index` names, if there is one. */
  get(args: CommandArguments, index: number): Command | undefined;
}

/** One call of a command. */
export interface Call {
  /** Argument 0 is the name. They are only valid until `run` returns. */
  readonly args: CommandArguments;
  readonly session: Session;
  readonly listener: ListenerState;
  /**
   * Asks the node. The answer is sent in the place of this command, in the form that `format` writes.
   *
   * @param question well-formed, see `invalidInQuestion`
   */
  ask(question: Question, format: AnswerFormat, quantity: number): void;
  /**
   * Like `ask`, for an answer that contains text.
   *
   * @param question well-formed, see `invalidInQuestion`
   */
  askAtLength(question: Question, replyTo: (answer: AskAnswer) => Reply): void;
  /**
   * Reserves the place of this command. The result must be called once, with the answer.
   *
   * @param bytesReserved the most bytes the answer may take. The client is not read further while too many bytes are
   *   waiting for it. 0 for an answer as small as a decision
   */
  answerLater(bytesReserved: number): (reply: Reply) => void;
}

/** One command. */
export interface Command {
  /** In upper case. */
  readonly name: string;
  /** The number of arguments including the name; -n means at least n. */
  readonly arity: number;
  /** The flags as `COMMAND` returns them. */
  readonly flags: readonly string[];
  /** The index of the argument that is a key; 0: none. */
  readonly key: 0 | 1 | 3;
  /** A sentence without its full stop, for `COMMAND DOCS`. */
  readonly summary: string;
  /** @returns undefined if the answer comes later */
  readonly run: (call: Call) => Reply | undefined;
  readonly subcommands?: Commands;
  /** How it behaves between `MULTI` and `EXEC`. Absent: it is queued until `EXEC`. */
  readonly inTransaction?: 'runs' | 'refused';
  /** It may run on a subscribed RESP2 connection, where Redis refuses all other commands. */
  readonly whileSubscribed?: true;
  /** It is refused while the node is overloaded. Absent: it is never refused for this reason. */
  readonly isShed?: true;
}
