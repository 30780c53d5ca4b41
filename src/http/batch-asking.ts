/** Asks the node for every request of a batch, each on its own, and collects the answers. */
import type { AskAnswer, AskDone } from '../api/question.ts';

/** What is kept of one answer. It is called as soon as the answer arrives; others may take longer. */
export type Reported<Q, T> = (wanted: Q, answer: AskAnswer, partition: number) => T;

/**
 * Asks in the order of the list.
 *
 * @param requests each well-formed
 * @param done called once, after the last answer, with the results in the order of the requests
 */
export function askBatch<Q, T>(
  node: { readonly ask: (question: Q, done: AskDone) => void },
  requests: readonly Q[],
  { reported, done }: { readonly reported: Reported<Q, T>; readonly done: (answers: readonly T[]) => void },
): void {
  const answers: T[] = [];
  let openCount = requests.length;
  if (openCount === 0) return done(answers);
  for (const [i, wanted] of requests.entries()) {
    node.ask(wanted, (answer, partition) => {
      answers[i] = reported(wanted, answer, partition);
      openCount -= 1;
      if (openCount === 0) done(answers);
    });
  }
}
