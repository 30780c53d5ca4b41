/**
 * A circuit breaker for the requests of one partition. While no leader answers, it refuses all requests at once, so
 * that they need not wait for their deadlines; meanwhile the node itself probes for a leader. It counts ticks and
 * not time, so a process that was paused does not find everybody silent when it resumes.
 *
 * - closed: all requests are sent to the leader, or wait for one
 * - open: all requests are refused, and the node sends one probe at a time. It opens when a request reaches its
 *   deadline and the partition has answered nobody for `silentTicksMin`.
 *
 * It closes when a leader answers anything, and only then.
 */
/** Times of the breaker, in ticks. */
export interface BreakerLimits {
  /** Longer than an election takes, so that requests waiting for one are served by its winner. */
  readonly silentTicksMin: number;
  /** From the end of one probe to the next. */
  readonly pauseTicks: number;
}

/** The breaker of one partition. */
export class Breaker {
  readonly #limits: BreakerLimits;
  #ticks = 0;
  /** Tick of the first request since a leader was last heard from. */
  #silentSince: number | undefined;
  /** Key to probe with while the breaker is open; undefined: it is closed. */
  #searchBy: string | undefined;
  /** Tick of the next probe; `Infinity` while one is running. */
  #searchDue = Infinity;

  constructor(limits: BreakerLimits) {
    this.#limits = limits;
  }

  get state(): 'closed' | 'open' {
    return this.#searchBy === undefined ? 'closed' : 'open';
  }

  /**
   * Call once per tick. Returns a key of the partition if a probe is due; the caller must call `searchEnded` when it
   * has ended.
   */
  tick(): string | undefined {
    this.#ticks += 1;
    if (this.#ticks < this.#searchDue) return undefined;
    this.#searchDue = Infinity;
    return this.#searchBy;
  }

  /** Whether a request may be sent. If it reaches its deadline unanswered, call `overdue`. */
  admits(): boolean {
    this.#silentSince ??= this.#ticks;
    return this.state === 'closed';
  }

  /** A leader has answered, or has become known. */
  heard(): void {
    this.#silentSince = undefined;
    this.#searchBy = undefined;
    this.#searchDue = Infinity;
  }

  /** A request for `key` reached its deadline unanswered. */
  overdue(key: string): void {
    if (this.state === 'open' || this.#silentSince === undefined) return;
    if (this.#ticks - this.#silentSince < this.#limits.silentTicksMin) return;
    this.#searchBy = key;
    this.#searchDue = this.#ticks;
  }

  /** The probe was answered or reached its deadline. */
  searchEnded(): void {
    if (this.state === 'open') this.#searchDue = this.#ticks + this.#limits.pauseTicks;
  }
}
