/**
 * Throttles log lines that other processes cause. Strangers and broken peers may misbehave many times a second
 * without end, and must not fill the disk. The first line of a kind is written at once; later ones are counted and
 * summed up in one line. Kinds are fixed; nothing that a sender chooses (addresses, ids) is a key.
 */
import type { Logger } from 'pino';

/** Time between two lines of a kind that goes on. */
const SPAN_MILLIS = 10_000;

interface Held {
  /** Since the last line. */
  count: number;
  fields: object;
  message: string;
  readonly timer: NodeJS.Timeout;
}

/** A logger with at most one line per kind and span. */
export class ThrottledLog<Kind extends string> {
  readonly #logger: Logger;
  readonly #held = new Map<Kind, Held>();

  constructor(logger: Logger) {
    this.#logger = logger;
  }

  /** Logs a warning, or counts it if one of this kind was logged recently. */
  warn(kind: Kind, fields: object, message: string): void {
    const held = this.#held.get(kind);
    if (held !== undefined) {
      held.count += 1;
      held.fields = fields;
      held.message = message;
      return;
    }
    this.#logger.warn(fields, message);
    const timer = setInterval(() => this.#report(kind), SPAN_MILLIS);
    timer.unref();
    this.#held.set(kind, { count: 0, fields, message, timer });
  }

  /**
   * Logs how many there were, with the last one as an example. After a span without any, the next one is logged at
   * once.
   */
  #report(kind: Kind): void {
    const held = this.#held.get(kind);
    if (held === undefined) return;
    if (held.count === 0) {
      clearInterval(held.timer);
      this.#held.delete(kind);
      return;
    }
    this.#logger.warn(
      { ...held.fields, times: held.count },
      `${held.message} (the last of several such lines)`,
    );
    held.count = 0;
  }

  /** Logs what was only counted so far. */
  close(): void {
    for (const kind of this.#held.keys()) {
      this.#report(kind);
      clearInterval(this.#held.get(kind)?.timer);
    }
    this.#held.clear();
  }
}
