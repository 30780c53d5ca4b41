/**
 * How long the last few entries of the term in which this node leads took to be committed: whatever is proposed now will
 * hardly be faster than the fastest of them. It errs towards trying: one quick commit corrects it, and what an earlier
 * term took, perhaps without a quorum for a while, says nothing.
 */

const KEPT = 8;

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

  /** 0 as long as nothing is known. */
  get fastestMillis(): number {
    return this.#millis.length < KEPT ? 0 : Math.min(...this.#millis);
  }
}
