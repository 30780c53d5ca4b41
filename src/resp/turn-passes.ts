/**
 * The work of all connections in one turn (one pass of the event loop). The read pass bounds the reading. The flush pass
 * sends the ready answers. This file does not know any command.
 */
import { ReplyWriter } from './reply-writer.ts';
import type { MonotonicClock } from '../api/clocks.ts';

/** A connection whose bytes wait to be read. */
export interface Readable {
  /** Continues reading. @param waitedMillis how long it waited */
  readOn(waitedMillis: number): void;
}

/** The time per turn for all connections together. Deciding the commands takes about as long again. */
const READ_MILLIS_MAX = 10;
/**
 * A turn reads at least this many commands, as many as one connection may have open, even if another process took the
 * time.
 */
const COMMANDS_MIN = 1_024;
/** The clock is only read once in this many commands, because reading it costs as much as some commands. */
const COMMANDS_PER_CHECK = 16;

interface Waiting {
  readonly connection: Readable;
  readonly sinceMillis: number;
}

/** The parts that a read pass is built from. */
interface ReadPassInit extends MonotonicClock {
  /** Runs `fn` when everything that came in this turn has been decided. */
  readonly atTurnEnd: (fn: () => void) => void;
}

/**
 * The connections that wait to be read. Limits how long one turn may read commands, so that messages between nodes never
 * wait longer, even if clients send very much. Connections that get no time in this turn continue in order in the next
 * ones.
 */
export class ReadPass {
  readonly #init: ReadPassInit;
  #waiting: Waiting[] = [];
  /** When this turn began to read, on the monotonic clock. Undefined: it has not. */
  #sinceMillis: number | undefined;
  #untilCheck = 0;
  /** How often the clock was read in this turn. */
  #clockReads = 0;
  #isOver = false;

  constructor(init: ReadPassInit) {
    this.#init = init;
  }

  /** True if connections are waiting. A new one has to queue behind them. */
  get hasWaiting(): boolean {
    return this.#waiting.length > 0;
  }

  /** True if one more command may be read in this turn. */
  mayRead(): boolean {
    if (this.#isOver) return false;
    if (this.#untilCheck > 0) {
      this.#untilCheck -= 1;
      return true;
    }
    this.#untilCheck = COMMANDS_PER_CHECK;
    const now = this.#init.monotonicMillis();
    if (this.#sinceMillis === undefined) {
      this.#sinceMillis = now;
      this.#init.atTurnEnd(() => this.#turnEnds());
    }
    this.#clockReads += 1;
    const isEnough = this.#clockReads * (COMMANDS_PER_CHECK + 1) > COMMANDS_MIN;
    this.#isOver = isEnough && now - this.#sinceMillis > READ_MILLIS_MAX;
    return !this.#isOver;
  }

  /** Queues a connection for a later turn. It must not be queued already. */
  wait(connection: Readable): void {
    this.#waiting.push({ connection, sinceMillis: this.#init.monotonicMillis() });
    if (this.#sinceMillis !== undefined) return;
    this.#sinceMillis = this.#init.monotonicMillis();
    this.#init.atTurnEnd(() => this.#turnEnds());
  }

  #turnEnds(): void {
    this.#sinceMillis = undefined;
    this.#untilCheck = 0;
    this.#clockReads = 0;
    this.#isOver = false;
    const waiting = this.#waiting;
    if (waiting.length === 0) return;
    this.#waiting = [];
    const now = this.#init.monotonicMillis();
    let next = 0;
    // A connection that does not finish goes to the end of the queue.
    for (; next < waiting.length && this.mayRead(); next += 1) {
      const { connection, sinceMillis } = waiting[next]!;
      connection.readOn(now - sinceMillis);
    }
    this.#waiting = [...waiting.slice(next), ...this.#waiting];
    if (this.#waiting.length > 0 && this.#sinceMillis === undefined) {
      this.#sinceMillis = now;
      this.#init.atTurnEnd(() => this.#turnEnds());
    }
  }
}

/** A connection, as the flush pass sees it. */
export interface Flushable {
  /** Sends the ready answers. `writer` is empty, and must be empty again afterwards. */
  flush(writer: ReplyWriter): void;
}

/**
 * The connections with something to send. Sends the ready answers of all connections once in each turn, so that each
 * connection needs only one write for all answers of a turn.
 */
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
