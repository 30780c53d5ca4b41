/**
 * Sends the ready answers of all connections once in each turn (one pass of the event loop), so that each connection
 * needs only one write for all answers of a turn.
 */
import { ReplyWriter } from './reply-writer.ts';

/** A connection, as the flush pass sees it. */
export interface Flushable {
  /** Sends the ready answers. `writer` is empty, and must be empty again afterwards. */
  flush(writer: ReplyWriter): void;
}

/** The connections with something to send. */
export class FlushPass {
  readonly #writer = new ReplyWriter();
  #waiting = new Set<Flushable>();
  #isPlanned = false;
  readonly #atTurnEnd: (flush: () => void) => void;

  constructor(atTurnEnd: (flush: () => void) => void) {
    this.#atTurnEnd = atTurnEnd;
  }

  /** Flushes the connection at the end of this turn, or of the next turn if this one was already flushed. */
  mark(connection: Flushable): void {
    this.#waiting.add(connection);
    if (this.#isPlanned) return;
    this.#isPlanned = true;
    this.#atTurnEnd(() => this.#run());
  }

  #run(): void {
    const waiting = this.#waiting;
    this.#waiting = new Set();
    this.#isPlanned = false;
    for (const connection of waiting) connection.flush(this.#writer);
  }
}
