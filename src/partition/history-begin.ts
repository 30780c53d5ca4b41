/** After history was lost: that this leader says once that the group runs again. It proposes nothing itself. */
import { encodeHistoryBegins } from '../limiter/log/command.ts';
import type { LimiterStateMachine } from '../limiter/state-machine.ts';

export class HistoryBegin {
  /** In which it was proposed. What another leader does not commit, it proposes itself. */
  #term = 0;

  isDue({ awaitsHistory }: LimiterStateMachine, term: number): boolean {
    return awaitsHistory && this.#term !== term;
  }

  /** Asked when it is due, and there is a place in the log. */
  take(term: number, wallMillis: number): Uint8Array {
    this.#term = term;
    return encodeHistoryBegins(Math.max(0, Math.floor(wallMillis)));
  }

  /** There was no place after all. */
  refused(): void {
    this.#term = 0;
  }
}
