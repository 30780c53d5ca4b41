/**
 * Sends what is ready, once per turn of the event loop for all connections: answers that came in one turn leave each connection
 * in one write. Commands that were read at once are answered in one write, too, unless some of them take long: a write costs as much as
 * several decisions, and whoever sends commands at once waits for the last answer.
 */
import { ReplyWriter } from './reply-writer.ts';

export interface Flushable {
  /** What was asked together with what goes out next is answered, too. */
  readonly isGroupReady: boolean;
  /** Sends what is ready. `writer` is empty, and must be left so. */
  flush(writer: ReplyWriter): void;
}

/** Answers wait for others of their group for so long at most. */
export const HOLD_MILLIS_MAX = 10;

export interface FlushPassInit {
  readonly monotonicMillis: () => number;
  readonly atTurnEnd: (flush: () => void) => void;
}

export class FlushPass {
  readonly #init: FlushPassInit;
  readonly #writer = new ReplyWriter();
  #waiting = new Set<Flushable>();
  /** Since when each has had an answer that waits for others; the first came first. */
  readonly #heldSinceMillis = new Map<Flushable, number>();
  #isPlanned = false;
  /** Somebody looks later at what is held. */
  #isTimed = false;

  constructor(init: FlushPassInit) {
    this.#init = init;
  }

  /** Flushes it at the end of this turn, or of the next one if this one is flushed already. */
  mark(connection: Flushable): void {
    this.#waiting.add(connection);
    this.#plan();
  }

  #plan(): void {
    if (this.#isPlanned) return;
    this.#isPlanned = true;
    this.#init.atTurnEnd(() => this.#run());
  }

  #run(): void {
    const waiting = this.#waiting;
    this.#waiting = new Set();
    this.#isPlanned = false;
    const nowMillis = this.#init.monotonicMillis();
    for (const connection of waiting) {
      if (connection.isGroupReady) this.#flush(connection);
      else if (!this.#heldSinceMillis.has(connection)) this.#heldSinceMillis.set(connection, nowMillis);
    }
    this.#flushHeld(nowMillis);
    if (this.#heldSinceMillis.size === 0 || this.#isTimed) return;
    this.#isTimed = true;
    setTimeout(() => {
      this.#isTimed = false;
      this.#plan();
    }, HOLD_MILLIS_MAX);
  }

  #flushHeld(nowMillis: number): void {
    for (const [connection, sinceMillis] of this.#heldSinceMillis) {
      if (nowMillis - sinceMillis < HOLD_MILLIS_MAX) return;
      this.#flush(connection);
    }
  }

  #flush(connection: Flushable): void {
    this.#heldSinceMillis.delete(connection);
    connection.flush(this.#writer);
  }
}
