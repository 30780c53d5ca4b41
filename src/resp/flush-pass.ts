/**
 * Sends what is ready, once per turn of the event loop for all connections: answers that came in one turn leave each connection
 * in one write.
 */
import { ReplyWriter } from './reply-writer.ts';

export interface Flushable {
  /** Sends what is ready. `writer` is empty, and must be left so. */
  flush(writer: ReplyWriter): void;
}

export class FlushPass {
  readonly #writer = new ReplyWriter();
  #waiting = new Set<Flushable>();
  #isPlanned = false;
  readonly #atTurnEnd: (flush: () => void) => void;

  constructor(atTurnEnd: (flush: () => void) => void) {
    this.#atTurnEnd = atTurnEnd;
  }

  /** Flushes it at the end of this turn, or of the next one if this one is flushed already. */
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
