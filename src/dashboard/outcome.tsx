/** Shows whether an action succeeded. Screen readers announce it. */
import type { JSX } from 'preact';

/** The result of an action. */
export interface Outcome {
  /** Empty before the first action. */
  readonly words: string;
  readonly isBad: boolean;
}

/** No action yet. */
export const NO_OUTCOME: Outcome = { words: '', isBad: false };

/** The outcome of an action. @param problem empty if it succeeded */
export function outcomeOf(problem: string, done: string): Outcome {
  return problem === '' ? { words: done, isBad: false } : { words: problem, isBad: true };
}

/** The line that shows an outcome. */
export function OutcomeWords({ outcome: { words, isBad } }: { readonly outcome: Outcome }): JSX.Element {
  return (
    <p class={words === '' ? 'message' : `message ${isBad ? 'bad' : 'good'}`} role="status">
      {words}
    </p>
  );
}
