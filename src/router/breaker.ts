/**
 * A circuit breaker for the requests of one partition: while its leader answers nobody, all are refused at once instead of waiting out
 * their deadlines. Meanwhile the node looks for the leader itself, so no caller has to. The breaker counts ticks, not time, so that a
 * process that was stopped finds nobody silent when it goes on. It asks nobody and answers nobody.
 *
 * - closed: all requests go on, to the leader or into the queue for one
 * - open, since a request came to its deadline and the partition had answered nobody for `silentTicksMin`: all are refused, and the
 *   node makes one look at a time
 *
 * Any word of a leader closes it, and nothing else does.
 */
export interface BreakerLimits {
  /** Longer than elections take: who waits for one of these is served by its winner. */
  readonly silentTicksMin: number;
  /** From the end of a look of the node to the next one. */
  readonly pauseTicks: number;
}

export class Breaker {
  readonly #limits: BreakerLimits;
  #ticks = 0;
  /** When the first request came since a leader was last heard. */
  #silentSince: number | undefined;
  /** What the node looks at while it is open; undefined: closed. */
  #lookAt: string | undefined;
  /** When the next look is due; `Infinity` while there is one. */
  #lookDue = Infinity;

  constructor(limits: BreakerLimits) {
    this.#limits = limits;
  }

  get state(): 'closed' | 'open' {
    return this.#lookAt === undefined ? 'closed' : 'open';
  }

  /** Returns the key of the partition that the node is to look at now, if it is to: then `lookEnded` must be told of that. */
  tick(): string | undefined {
    this.#ticks += 1;
    if (this.#ticks < this.#lookDue) return undefined;
    this.#lookDue = Infinity;
    return this.#lookAt;
  }

  /** May a request go on? If so, and it comes to its deadline without an answer, `overdue` must be told of it. */
  admits(): boolean {
    this.#silentSince ??= this.#ticks;
    return this.state === 'closed';
  }

  /** A leader has spoken, or is known from now on. */
  heard(): void {
    this.#silentSince = undefined;
    this.#lookAt = undefined;
    this.#lookDue = Infinity;
  }

  /** A request for `key` came to its deadline without an answer. */
  overdue(key: string): void {
    if (this.state === 'open' || this.#silentSince === undefined) return;
    if (this.#ticks - this.#silentSince < this.#limits.silentTicksMin) return;
    this.#lookAt = key;
    this.#lookDue = this.#ticks;
  }

  /** The look of the node was answered, or came to its deadline. */
  lookEnded(): void {
    if (this.state === 'open') this.#lookDue = this.#ticks + this.#limits.pauseTicks;
  }
}
