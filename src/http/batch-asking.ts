/** Asks for all requests of a batch, each for itself, and gathers what becomes of them. It reads and formats nothing. */
import type { AskAnswer, AskDone } from '../api/question.ts';

/** What is gathered of an answer as soon as it is there; the others may take a while. */
export type Told<Q, T> = (wanted: Q, answer: AskAnswer, partition: number) => T;

/**
 * Asks in the order of the list.
 *
 * @param requests each well-formed
 * @param done told once, when the last is answered: what became of each, in its place
 */
export function askBatch<Q, T>(
  node: { readonly ask: (question: Q, done: AskDone) => void },
  requests: readonly Q[],
  { told, done }: { readonly told: Told<Q, T>; readonly done: (answers: readonly T[]) => void },
): void {
  const answers: T[] = [];
  let openCount = requests.length;
  if (openCount === 0) return done(answers);
  for (const [i, wanted] of requests.entries()) {
    node.ask(wanted, (answer, partition) => {
      answers[i] = told(wanted, answer, partition);
      openCount -= 1;
      if (openCount === 0) done(answers);
    });
  }
}
