/**
 * Log lines about what others cause: strangers and broken peers may be bad sixty times a second, for ever, and must not
 * fill the disk. The first of a kind is written at once, those that follow are counted, and told together. It keeps
 * one line per kind: what the sender chooses (addresses, ids) is never a key.
 */
import type { Logger } from 'pino';

/** A kind that goes on is told again as often. */
const SPAN_MILLIS = 10_000;

interface Held {
  /** Since the last line. */
  count: number;
  fields: object;
  message: string;
  readonly timer: NodeJS.Timeout;
}

export class ThrottledLog<Kind extends string> {
  readonly #logger: Logger;
  readonly #held = new Map<Kind, Held>();

  constructor(logger: Logger) {
    this.#logger = logger;
  }

  warn(kind: Kind, fields: object, message: string): void {
    const held = this.#held.get(kind);
    if (held !== undefined) {
      held.count += 1;
      held.fields = fields;
      held.message = message;
      return;
    }
    this.#logger.warn(fields, message);
    const timer = setInterval(() => this.#tell(kind), SPAN_MILLIS);
    timer.unref();
    this.#held.set(kind, { count: 0, fields, message, timer });
  }

  /** Says how many there were, with the last one as an example. After a span without any, the next is told at once. */
  #tell(kind: Kind): void {
    const held = this.#held.get(kind);
    if (held === undefined) return;
    if (held.count === 0) {
      clearInterval(held.timer);
      this.#held.delete(kind);
      return;
    }
    this.#logger.warn({ ...held.fields, times: held.count }, `${held.message} (the last of several)`);
    held.count = 0;
  }

  /** Tells what was not told yet. */
  close(): void {
    for (const kind of this.#held.keys()) {
      this.#tell(kind);
      clearInterval(this.#held.get(kind)?.timer);
    }
    this.#held.clear();
  }
}
