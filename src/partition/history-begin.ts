/** After history was lost, makes each leader propose once that the group runs again. */
import { encodeHistoryBegins } from '../limiter/log/command.ts';
import type { LimiterStateMachine } from '../limiter/state-machine.ts';

/** The proposal of one partition's leader. */
export class HistoryBegin {
  /**
   * The term of the last proposal. If another leader takes over before it is committed, that leader proposes it itself.
   */
  #term = 0;

  isDue({ awaitsHistory }: LimiterStateMachine, term: number): boolean {
    return awaitsHistory && this.#term !== term;
  }

  /** The entry to propose. Call it only if it is due and there is a place in the log. */
  take(term: number, wallMillis: number): Uint8Array {
    this.#term = term;
    return encodeHistoryBegins(Math.max(0, Math.floor(wallMillis)));
  }

  /** There was no place in the log after all. */
  refused(): void {
    this.#term = 0;
  }
}
