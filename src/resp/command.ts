/** What a command is: its place in the table, and what it may use of the connection and the door that it came by. */
import type { AskAnswer, Question } from '../api/question.ts';
import type { NodeBehindDoor } from '../api/front-door.ts';
import type { ALLOW_STATUS } from '../api/refusals.ts';
import type { AnswerFormat } from './answer-queue.ts';
import type { CommandArguments } from './command-arguments.ts';
import type { Reply } from './reply.ts';
import type { KeptForAll } from './kept-bytes.ts';
import type { Session } from './session.ts';

/** What the door counts, since the node started. */
export interface DoorCounts {
  connections: number;
  /** Connections beyond the most that there may be. */
  rejected: number;
  commands: number;
  /** What became of requests for a grant that the node was asked. */
  readonly answers: Record<keyof typeof ALLOW_STATUS, number>;
}

/** What all connections share. */
export interface DoorState {
  readonly node: NodeBehindDoor;
  /** Of the package. */
  readonly version: string;
  readonly monotonicMillis: () => number;
  /** On the monotonic clock. */
  readonly startedMillis: number;
  readonly port: () => number;
  readonly connectionsMax: number;
  /** What is kept for all connections together: of commands that are not finished, and of answers that are not taken. */
  readonly kept: KeptForAll;
  readonly counts: DoorCounts;
  readonly sessions: () => Iterable<Session>;
  readonly commands: Commands;
}

/** Commands by their names: see `CommandTable`. */
export interface Commands {
  readonly all: readonly Command[];
  /** The one that is called like this argument, if there is one. */
  get(args: CommandArguments, index: number): Command | undefined;
}

/** One command on its way. */
export interface Call {
  /** The name is argument 0. They are gone when `run` has returned. */
  readonly args: CommandArguments;
  readonly session: Session;
  readonly door: DoorState;
  /**
   * Asks the node. The answer goes out in the place of this command, as `format` writes it.
   *
   * @param question well-formed, see `invalidInQuestion`
   */
  ask(question: Question, format: AnswerFormat, quantity: number): void;
  /**
   * The same, where the answer has text in it.
   *
   * @param question well-formed, see `invalidInQuestion`
   */
  askAtLength(question: Question, replyTo: (answer: AskAnswer) => Reply): void;
  /**
   * Keeps the place of this command: what is given back takes its answer, once.
   *
   * @param bytesReserved what the answer may take; the client is read no further while too much is on its way to it. 0 for an
   *   answer that is as small as a decision
   */
  answerLater(bytesReserved: number): (reply: Reply) => void;
}

export interface Command {
  /** In capitals. */
  readonly name: string;
  /** How many arguments it takes, its names included; -n: at least n. */
  readonly arity: number;
  /** As `COMMAND` tells them. */
  readonly flags: readonly string[];
  /** Which argument is a key; 0: none is. */
  readonly key: 0 | 1 | 3;
  /** A sentence without its full stop. */
  readonly summary: string;
  /** @returns undefined where the node was asked */
  readonly run: (call: Call) => Reply | undefined;
  readonly subcommands?: Commands;
  /** Between `MULTI` and `EXEC`. Absent: it is kept until `EXEC`. */
  readonly inTransaction?: 'runs' | 'refused';
  /** It runs on a connection of RESP2 that has subscribed, where Redis refuses all others. */
  readonly whileSubscribed?: true;
  /** It is refused while the node has more to do than it can. Absent: it never is. */
  readonly isShed?: true;
}
