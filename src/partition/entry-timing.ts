/** How long the entries of a leader take: one of them in its stages, and the last few until they were committed. */
import type { UserRequest } from '../api/user-request.ts';

/**
 * How long an entry that this leader proposed took, from its first waiting request until it was applied. For metrics
 * and traces. Times are in milliseconds.
 */
export interface EntryTiming {
  readonly term: number;
  readonly index: number;
  /** How many requests are in it, at least 1. */
  readonly requests: number;
  /** The longest time that one of them may have waited for a place in the log. */
  readonly queueMillis: number;
  /** From its proposal until this leader began to apply it. By then a quorum has it on disk. */
  readonly commitMillis: number;
  readonly applyMillis: number;
  /** One of its requests. */
  readonly sample: UserRequest;
}

const KEPT = 8;

/**
 * How long the last few entries of this leader's term took to be committed. A new proposal will hardly be faster
 * than the fastest of them. The estimate errs towards trying: a single quick commit corrects it, and times of
 * earlier terms, perhaps without a quorum for a while, are dropped.
 */
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
