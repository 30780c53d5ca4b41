/**
 * How long the last few entries of this leader's term took to be committed. A new proposal will hardly be faster than
 * the fastest of them. The estimate errs towards trying: a single quick commit corrects it, and times of earlier terms,
 * perhaps without a quorum for a while, are dropped.
 */

const KEPT = 8;

/** The commit times of one leader. */
export class CommitTimes {
  readonly #millis: number[] = [];
  #next = 0;
  #term = 0;

  /** This node leads in `term`. */
  leads(term: number): void {
    if (term === this.#term) return;
    this.#term = term;
    this.#millis.length = 0;
    this.#next = 0;
  }

  observe(term: number, millis: number): void {
    if (term !== this.#term) return;
    this.#millis[this.#next] = millis;
    this.#next = (this.#next + 1) % KEPT;
  }

  /** In milliseconds; 0 as long as too little is known. */
  get fastestMillis(): number {
    return this.#millis.length < KEPT ? 0 : Math.min(...this.#millis);
  }
}
