/**
 * How long ago what is read now may have come. A process that was stopped, or whose loop was held up, finds in its
 * sockets what clients sent long ago and have given up since: its age counts from the last moment at which everything
 * before had certainly been read. It only looks at the event loop of this process; it decides nothing.
 *
 * Everything sent before a timer fires is read in the poll that follows, but for connections that wait to be accepted:
 * libuv takes one of them in each round of the loop, and reads it for the first time in the next. After a stop there may
 * be a whole backlog of them.
 */
import { performance } from 'node:perf_hooks';

/** The clock looks this often. */
const LOOK_MILLIS = 10;
/** Rounds of the loop and timers are this late without anybody being held up. */
const LAG_MILLIS_MAX = 25;
/** Connections that the system holds for a listener until it accepts them: Node's default, and one. */
const BACKLOG_MAX = 512;

export interface DoorClockInit {
  readonly monotonicMillis?: () => number;
  /** Runs `fn` after the next poll of the event loop. */
  readonly afterPoll?: (fn: () => void) => void;
}

export class DoorClock {
  readonly #monotonicMillis: () => number;
  readonly #afterPoll: (fn: () => void) => void;
  readonly #timer: NodeJS.Timeout;
  /** What came before this has been read. */
  #drainedMillis: number;
  #lookedMillis: number;
  #isDraining = false;
  /** Since the clock began to wait for what came before it looked. */
  #wasHeldUp = false;
  /** Connections that may have waited already when it began. */
  #backlog = 0;
  /** Connections accepted in this round of the loop. */
  #accepted = 0;

  constructor(init: DoorClockInit = {}) {
    this.#monotonicMillis = init.monotonicMillis ?? (() => performance.now());
    this.#afterPoll = init.afterPoll ?? ((fn) => void setImmediate(fn));
    this.#drainedMillis = this.#monotonicMillis();
    this.#lookedMillis = this.#drainedMillis;
    this.#timer = setInterval(() => this.#look(), LOOK_MILLIS);
  }

  /**
   * On the monotonic clock, and never ahead of it: what is read at the moment of this call came after this. Now, unless
   * the loop was held up.
   */
  nowMillis(): number {
    const now = this.#monotonicMillis();
    return now - this.#drainedMillis > LAG_MILLIS_MAX ? this.#drainedMillis : now;
  }

  /** A connection was accepted. */
  accepted(): void {
    this.#accepted += 1;
  }

  close(): void {
    clearInterval(this.#timer);
  }

  #look(): void {
    const now = this.#monotonicMillis();
    this.#wasHeldUp ||= now - this.#lookedMillis > LAG_MILLIS_MAX;
    this.#lookedMillis = now;
    // What came later has its turn: with a new connection in each round there would be no end to this one.
    if (this.#isDraining) return;
    this.#isDraining = true;
    this.#backlog = this.#wasHeldUp ? BACKLOG_MAX : 0;
    this.#wasHeldUp = false;
    this.#accepted = 0;
    this.#drain(now);
  }

  #drain(lookedMillis: number): void {
    this.#afterPoll(() => {
      const accepted = this.#accepted;
      this.#accepted = 0;
      this.#backlog = accepted === 0 ? 0 : Math.max(0, this.#backlog - accepted);
      if (this.#backlog > 0) {
        this.#drain(lookedMillis);
        return;
      }
      // What was accepted last is read once more.
      this.#afterPoll(() => {
        this.#drainedMillis = lookedMillis;
        this.#isDraining = false;
      });
    });
  }
}
