/**
 * The open streams of `/v1/events`. All of them get the same bytes once a second. Their number is bounded, and so is
 * the memory for a slow one: it misses events, and is finally disconnected. This file does not know what the events
 * contain.
 */
import type { ServerResponse } from 'node:http';

/** The most streams of one node; one more is refused. */
export const LISTENERS_MAX = 16;
/** The time between two events, in milliseconds. */
export const EVENT_MILLIS = 1_000;
/** A client that has read nothing for this many seconds is disconnected. */
const STUCK_TURNS_MAX = 30;

/** One stream. */
export interface Listener {
  readonly response: ServerResponse;
  /** False after its token was revoked. */
  readonly mayListen: () => boolean;
}

/** The source of the events. */
export interface EventStreamsInit {
  /** The next events for all streams, as complete text. Called once a second. */
  readonly next: () => string;
  /** True if all streams should end. */
  readonly isOver: () => boolean;
}

/** The open streams of one node. */
export class EventStreams {
  readonly #init: EventStreamsInit;
  /** Each stream with the number of seconds for which it has read nothing. At most `LISTENERS_MAX`. */
  readonly #listeners = new Map<Listener, number>();
  #timer: NodeJS.Timeout | undefined;

  constructor(init: EventStreamsInit) {
    this.#init = init;
  }

  get isFull(): boolean {
    return this.#listeners.size >= LISTENERS_MAX;
  }

  /** Adds a stream. The caller checks `isFull` first. @param first the first events, only for this stream */
  add(listener: Listener, first: string): void {
    const { response } = listener;
    const { socket } = response;
    // The client has left already, or another response on the same connection is still unfinished. Then nothing would
    // report the end of this one.
    if (response.destroyed || socket === null) {
      response.destroy();
      return;
    }
    response.once('close', () => this.#remove(listener));
    this.#listeners.set(listener, 0);
    response.write(first);
    this.#timer ??= setInterval(() => this.turn(), EVENT_MILLIS);
  }

  /** Sends the next events to all streams. */
  turn(): void {
    const isOver = this.#init.isOver();
    const text = isOver ? '' : this.#init.next();
    for (const [listener, stuckTurns] of this.#listeners) {
      const { response, mayListen } = listener;
      if (!response.writableEnded && (isOver || !mayListen())) response.end();
      // The previous events have not been read yet.
      if (response.writableEnded || response.writableNeedDrain) {
        if (stuckTurns >= STUCK_TURNS_MAX) response.destroy();
        else this.#listeners.set(listener, stuckTurns + 1);
      } else {
        response.write(text);
        this.#listeners.set(listener, 0);
      }
    }
  }

  /** Ends all streams. */
  end(): void {
    for (const { response } of this.#listeners.keys()) response.end();
  }

  #remove(listener: Listener): void {
    this.#listeners.delete(listener);
    if (this.#listeners.size > 0) return;
    clearInterval(this.#timer);
    this.#timer = undefined;
  }
}
