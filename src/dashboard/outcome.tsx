/** What became of something that was asked for, read out as well as shown. */
import type { JSX } from 'preact';

export interface Outcome {
  /** Empty: nothing was asked for yet. */
  readonly words: string;
  readonly isBad: boolean;
}

export const NO_OUTCOME: Outcome = { words: '', isBad: false };

/** @param problem empty: it is done */
export function outcomeOf(problem: string, done: string): Outcome {
  return problem === '' ? { words: done, isBad: false } : { words: problem, isBad: true };
}

export function OutcomeWords({ outcome: { words, isBad } }: { readonly outcome: Outcome }): JSX.Element {
  return (
    <p class={words === '' ? 'message' : `message ${isBad ? 'bad' : 'good'}`} role="status">
      {words}
    </p>
  );
}
