/**
 * How long one turn of the event loop may read commands: what nodes say to each other waits for no more than that, whatever
 * clients send. Connections that come too late for this turn go on in order, behind it. It knows of no command.
 */

/** A connection whose bytes wait to be read. */
export interface Readable {
  /** @param waitedMillis since it was told to wait */
  readOn(waitedMillis: number): void;
}

/** For all connections together; a turn that decides as much takes about as long again. */
const READ_MILLIS_MAX = 10;
/** A turn reads so many at least, which is a connection's worth: the time may have gone to another process. */
const COMMANDS_MIN = 1_024;
/** A look at the clock costs as much as some commands. */
const COMMANDS_PER_LOOK = 16;

interface Waiting {
  readonly connection: Readable;
  readonly sinceMillis: number;
}

export interface ReadPassInit {
  readonly monotonicMillis: () => number;
  /** Runs `fn` when what has come in this turn of the event loop is decided. */
  readonly atTurnEnd: (fn: () => void) => void;
}

export class ReadPass {
  readonly #init: ReadPassInit;
  #waiting: Waiting[] = [];
  /** When this turn began to read; undefined: it has not. */
  #sinceMillis: number | undefined;
  #untilLook = 0;
  /** Looks at the clock in this turn. */
  #looks = 0;
  #isOver = false;

  constructor(init: ReadPassInit) {
    this.#init = init;
  }

  /** Others were told to wait: who comes now is behind them. */
  get hasWaiting(): boolean {
    return this.#waiting.length > 0;
  }

  /** Whether one more command may be read in this turn. */
  mayRead(): boolean {
    if (this.#isOver) return false;
    if (this.#untilLook > 0) {
      this.#untilLook -= 1;
      return true;
    }
    this.#untilLook = COMMANDS_PER_LOOK;
    const now = this.#init.monotonicMillis();
    if (this.#sinceMillis === undefined) {
      this.#sinceMillis = now;
      this.#init.atTurnEnd(() => this.#turnEnds());
    }
    this.#looks += 1;
    const isEnough = this.#looks * (COMMANDS_PER_LOOK + 1) > COMMANDS_MIN;
    this.#isOver = isEnough && now - this.#sinceMillis > READ_MILLIS_MAX;
    return !this.#isOver;
  }

  /** It is told to read on in another turn. Once at a time. */
  wait(connection: Readable): void {
    this.#waiting.push({ connection, sinceMillis: this.#init.monotonicMillis() });
    if (this.#sinceMillis !== undefined) return;
    this.#sinceMillis = this.#init.monotonicMillis();
    this.#init.atTurnEnd(() => this.#turnEnds());
  }

  #turnEnds(): void {
    this.#sinceMillis = undefined;
    this.#untilLook = 0;
    this.#looks = 0;
    this.#isOver = false;
    const waiting = this.#waiting;
    if (waiting.length === 0) return;
    this.#waiting = [];
    const now = this.#init.monotonicMillis();
    let next = 0;
    // What these leave unread is the last in line again.
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
