/**
 * How long the last few entries took to be committed and applied: whatever is proposed now will hardly be faster than
 * the fastest of them. It errs towards trying: one quick commit corrects it.
 */

const KEPT = 8;

export class CommitTimes {
  readonly #millis: number[] = [];
  #next = 0;

  observe(millis: number): void {
    this.#millis[this.#next] = millis;
    this.#next = (this.#next + 1) % KEPT;
  }

  /** 0 as long as nothing is known. */
  get fastestMillis(): number {
    return this.#millis.length < KEPT ? 0 : Math.min(...this.#millis);
  }
}
