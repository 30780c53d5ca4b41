/**
 * Knows how old the requests that are read now may be. After a process was paused or its event loop was blocked,
 * its sockets contain requests that clients have given up long ago. So the age of a request counts from the last
 * moment at which everything sent before had certainly been read.
 *
 * Everything that is sent before a timer fires is read in the following poll, with one exception: connections that
 * wait to be accepted. libuv accepts one of them in each pass of the loop and reads it first in the next pass, and
 * after a pause a whole backlog may wait.
 */
import { performance } from 'node:perf_hooks';

/** Interval of the timer. */
const CHECK_MILLIS = 10;
/** Timers may be this late without the loop being blocked. */
const LAG_MILLIS_MAX = 25;
/** Connections that the system queues for a listener: Node's default, plus one. */
const BACKLOG_MAX = 512;

/** What `ListenerClock` needs. */
export interface ListenerClockInit {
  readonly monotonicMillis?: () => number;
  /** Runs `fn` after the next poll of the event loop. */
  readonly afterPoll?: (fn: () => void) => void;
}

/** The arrival clock of one process. */
export class ListenerClock {
  readonly #monotonicMillis: () => number;
  readonly #afterPoll: (fn: () => void) => void;
  readonly #timer: NodeJS.Timeout;
  /** Everything that arrived before this time has been read. */
  #drainedMillis: number;
  #checkedMillis: number;
  #isDraining = false;
  /** The loop was blocked since the last drain began. */
  #wasHeldUp = false;
  /** Connections that may have been waiting when the drain began. */
  #backlog = 0;
  /** Connections accepted in this pass of the loop. */
  #accepted = 0;

  constructor(init: ListenerClockInit = {}) {
    this.#monotonicMillis = init.monotonicMillis ?? (() => performance.now());
    this.#afterPoll = init.afterPoll ?? ((fn) => void setImmediate(fn));
    this.#drainedMillis = this.#monotonicMillis();
    this.#checkedMillis = this.#drainedMillis;
    this.#timer = setInterval(() => this.#check(), CHECK_MILLIS);
  }

  /**
   * A lower bound, on the monotonic clock, for the arrival of what is read at the moment of this call. It is the
   * current time, unless the loop was blocked.
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

  #check(): void {
    const now = this.#monotonicMillis();
    this.#wasHeldUp ||= now - this.#checkedMillis > LAG_MILLIS_MAX;
    this.#checkedMillis = now;
    // A drain is running. Later arrivals wait for the next one; with a new connection in every pass this one would
    // never end.
    if (this.#isDraining) return;
    this.#isDraining = true;
    this.#backlog = this.#wasHeldUp ? BACKLOG_MAX : 0;
    this.#wasHeldUp = false;
    this.#accepted = 0;
    this.#drain(now);
  }

  #drain(checkedMillis: number): void {
    this.#afterPoll(() => {
      const accepted = this.#accepted;
      this.#accepted = 0;
      this.#backlog = accepted === 0 ? 0 : Math.max(0, this.#backlog - accepted);
      if (this.#backlog > 0) {
        this.#drain(checkedMillis);
        return;
      }
      // The connection that was accepted last is read one pass later.
      this.#afterPoll(() => {
        this.#drainedMillis = checkedMillis;
        this.#isDraining = false;
      });
    });
  }
}
