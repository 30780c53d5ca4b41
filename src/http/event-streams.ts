/**
 * Those who listen to `/v1/events`: each is sent the same bytes once a second. Their number is bounded, and so is what waits for one
 * that reads slowly: it misses what comes meanwhile, and is cut off at last. It knows nothing of what is told.
 */
import type { ServerResponse } from 'node:http';

/** Of one node; one more is refused. */
export const LISTENERS_MAX = 16;
export const EVENT_MILLIS = 1_000;
/** One that read nothing for so many turns is gone, be it told that it is over or not. */
const STUCK_TURNS_MAX = 30;

export interface Listener {
  readonly response: ServerResponse;
  /** Its token may have been revoked. */
  readonly mayListen: () => boolean;
}

export interface EventStreamsInit {
  /** What is told next to all: whole events. Called once a turn. */
  readonly next: () => string;
  /** Everybody should go elsewhere. */
  readonly isOver: () => boolean;
}

export class EventStreams {
  readonly #init: EventStreamsInit;
  /** With the turns for which each has read nothing. At most `LISTENERS_MAX`. */
  readonly #listeners = new Map<Listener, number>();
  #timer: NodeJS.Timeout | undefined;

  constructor(init: EventStreamsInit) {
    this.#init = init;
  }

  get isFull(): boolean {
    return this.#listeners.size >= LISTENERS_MAX;
  }

  /** Unless `isFull`. @param first what is told to it alone, at once */
  add(listener: Listener, first: string): void {
    const { response } = listener;
    const { socket } = response;
    // Its client left before it could be told anything; or another answer goes before it, and nobody would say that it is over.
    if (response.destroyed || socket === null) {
      response.destroy();
      return;
    }
    response.once('close', () => this.#remove(listener));
    this.#listeners.set(listener, 0);
    response.write(first);
    this.#timer ??= setInterval(() => this.turn(), EVENT_MILLIS);
  }

  /** Tells all of them what is next. */
  turn(): void {
    const isOver = this.#init.isOver();
    const text = isOver ? '' : this.#init.next();
    for (const [listener, stuckTurns] of this.#listeners) {
      const { response, mayListen } = listener;
      if (!response.writableEnded && (isOver || !mayListen())) response.end();
      // What was told last is on its way still.
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
