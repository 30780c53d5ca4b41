/**
 * The answers of one connection. Each of its commands has a place, in which its answer is sent whenever it arrives.
 * Also counts the answers. It reads nothing from the client.
 */
import type { AskAnswer, Question } from '../api/question.ts';
import { type AnswerFormat, AnswerQueue } from './answer-queue.ts';
import type { ListenerCounts, ListenerState } from './command.ts';
import { writeAllow } from './commands/answer-forms.ts';
import type { Reply } from './reply.ts';
import { ReplyWriter } from './reply-writer.ts';
import type { Session } from './session.ts';

/** The most bytes of a decision with a rule id of 128 bytes. */
const DESCRIBED_BYTES_MAX = 256;
/** Encodes answers that are ready; only used within one call. */
const scratch = new ReplyWriter();

/**
 * The encoded refusal of a command because of load, the same for every command. It is encoded only once, because
 * refusing must cost far less than deciding.
 */
const SHED_BYTES = bytesOfShed();

function bytesOfShed(): Buffer {
  writeAllow(scratch, { kind: 'unavailable', reason: 'overloaded', proposed: false });
  return scratch.take();
}

/** The parts that it is built from. */
export interface ConnectionAnswersInit {
  readonly session: Session;
  readonly listener: ListenerState;
  /** Called when something can be sent. */
  readonly mark: () => void;
}

/** The answers of one connection. */
export class ConnectionAnswers {
  readonly #init: ConnectionAnswersInit;
  readonly #queue = new AnswerQueue();
  /** The requests that were refused because of load since the last flush. */
  #shed = 0;
  /** The connection is closed, so answers are dropped. */
  #isOver = false;

  constructor(init: ConnectionAnswersInit) {
    this.#init = init;
  }

  /** The number of answers that have not been sent. */
  get count(): number {
    return this.#queue.count;
  }

  /** Their bytes (see `AnswerQueue`). */
  get heldBytes(): number {
    return this.#queue.heldBytes;
  }

  /** Moves all answers that can be sent to `writer`. */
  drainTo(writer: ReplyWriter): void {
    this.#countShed();
    this.#queue.drainTo(writer);
  }

  /** The connection is closed. */
  end(): void {
    this.#isOver = true;
    this.#queue.clear();
  }

  /** Adds an answer that is ready. */
  reply(reply: Reply): void {
    scratch.reply(reply, this.#init.session.version);
    this.#queue.add(scratch.take());
    this.#init.mark();
  }

  /**
   * Refuses a request because of load. All refusals are counted and sent together, because refusing must cost far
   * less than deciding.
   */
  shed(): void {
    if (this.#shed === 0) this.#init.mark();
    this.#shed += 1;
    this.#queue.addAgain(SHED_BYTES);
  }

  /** See `Call`. */
  ask(question: Question, format: AnswerFormat, quantity: number): void {
    const place = this.#queue.reserve(format, quantity);
    const { session, listener } = this.#init;
    const startedMillis = session.lastMillis;
    const load = listener.node.shedding.entered(session.client, 1);
    // Most requests come here, so it creates only one closure.
    listener.node.ask(question, (answer) => {
      listener.node.shedding.left(load, 1);
      this.#answered(question, answer, startedMillis);
      this.#queue.settle(place, answer);
      if (this.#queue.isReady && !this.#isOver) this.#init.mark();
    });
  }

  /** See `Call`. */
  askAtLength(question: Question, replyTo: (answer: AskAnswer) => Reply): void {
    const reply = this.later(DESCRIBED_BYTES_MAX);
    const { session, listener } = this.#init;
    const startedMillis = session.lastMillis;
    const load = listener.node.shedding.entered(session.client, 1);
    listener.node.ask(question, (answer) => {
      listener.node.shedding.left(load, 1);
      this.#answered(question, answer, startedMillis);
      reply(replyTo(answer));
    });
  }

  /** See `Call.answerLater`. */
  later(bytesReserved: number): (reply: Reply) => void {
    const place = this.#queue.reserveBytes(bytesReserved);
    const { version } = this.#init.session;
    return (reply) => {
      if (this.#isOver) return;
      scratch.reply(reply, version);
      this.#queue.fill(place, scratch.take(), bytesReserved);
      if (this.#queue.isReady) this.#init.mark();
    };
  }

  #answered(question: Question, answer: AskAnswer, startedMillis: number): void {
    const { node, counts } = this.#init.listener;
    count(counts, answer);
    node.answered(question, answer, startedMillis);
  }

  #countShed(): void {
    if (this.#shed === 0) return;
    const { node, counts } = this.#init.listener;
    counts.answers.unavailable += this.#shed;
    node.refusedUnread(this.#shed);
    this.#shed = 0;
  }
}

/** Adds one answer to the counters. */
function count({ answers }: ListenerCounts, answer: AskAnswer): void {
  switch (answer.kind) {
    case 'unlimited':
      answers.granted += 1;
      return;
    case 'unmatched':
      answers.denied += 1;
      return;
    case 'degraded':
      answers[answer.allowed ? 'granted' : 'denied'] += 1;
      return;
    case 'decision':
      answers[answer.decision.allowed ? 'granted' : 'denied'] += 1;
      return;
    default:
      answers[answer.kind] += 1;
  }
}
