/**
 * A circuit breaker for the requests of one partition: while its leader answers nobody, all but one are refused at once instead of
 * waiting out their deadlines. It counts ticks, not time, so that a process that was stopped finds nobody silent when it goes on. It
 * asks nobody and answers nobody.
 *
 * - closed: all requests go on, to the leader or into the queue for one
 * - open, since a request came to its deadline and the partition had answered nobody for `silentTicksMin`: all are refused
 * - half-open: but for one at a time, which goes on, and finds the leader if there is one
 *
 * Any word of a leader closes it. So does time, if nobody comes to his deadline for `openTicks`: what was so then may be so no more.
 */
export interface BreakerLimits {
  /** Longer than elections take: who waits for one of these is served by its winner. */
  readonly silentTicksMin: number;
  readonly openTicks: number;
  /** Who goes on may be stuck at a silent node; after so long another one may. */
  readonly probeTicks: number;
}

export class Breaker {
  readonly #limits: BreakerLimits;
  #ticks = 0;
  /** When the first request came since a leader was last heard. */
  #silentSince: number | undefined;
  /** Of the last one that came to its deadline in silence; undefined: closed. */
  #openUntil: number | undefined;
  /** What goes on while it is open. */
  #probe: object | undefined;
  #probeSince = 0;

  constructor(limits: BreakerLimits) {
    this.#limits = limits;
  }

  get state(): 'closed' | 'open' | 'halfOpen' {
    if (this.#probe !== undefined) return 'halfOpen';
    return this.#openUntil === undefined || this.#ticks >= this.#openUntil ? 'closed' : 'open';
  }

  tick(): void {
    this.#ticks += 1;
  }

  /** May `request` go on? If so, `ended` must be told of it. */
  admits(request: object): boolean {
    this.#silentSince ??= this.#ticks;
    const { state } = this;
    if (state === 'closed') return true;
    if (state === 'halfOpen' && this.#ticks < this.#probeSince + this.#limits.probeTicks) return false;
    this.#probe = request;
    this.#probeSince = this.#ticks;
    return true;
  }

  /** A leader has spoken, or is known from now on. */
  heard(): void {
    this.#silentSince = undefined;
    this.#openUntil = undefined;
    this.#probe = undefined;
  }

  /** `request` has its answer, or came to its deadline without. */
  ended(request: object, isOverdue: boolean): void {
    if (this.#probe === request) this.#probe = undefined;
    if (!isOverdue || this.#silentSince === undefined) return;
    const { silentTicksMin, openTicks } = this.#limits;
    if (this.#ticks - this.#silentSince >= silentTicksMin) this.#openUntil = this.#ticks + openTicks;
  }
}
