/** Asks for all requests of a batch, each for itself, and gathers what becomes of them. It reads and formats nothing. */
import type { DescribedAnswer, DescribedRequest } from '../api/described.ts';
import type { NodeBehindDoor } from '../api/front-door.ts';
import type { AllowRequest } from '../api/request.ts';
import { askFor } from './allow-route.ts';

/** What is gathered of an answer as soon as it is there; the others may take a while. */
export type Told<T> = (
  wanted: AllowRequest | DescribedRequest,
  answer: DescribedAnswer,
  partition: number,
) => T;

/**
 * Asks in the order of the list.
 *
 * @param requests at least one, each well-formed
 * @param done told once, when the last is answered: what became of each, in its place
 */
export function askBatch<T>(
  node: Pick<NodeBehindDoor, 'allow' | 'allowDescribed'>,
  requests: readonly (AllowRequest | DescribedRequest)[],
  { told, done }: { readonly told: Told<T>; readonly done: (answers: readonly T[]) => void },
): void {
  const answers: T[] = [];
  let openCount = requests.length;
  for (const [i, wanted] of requests.entries()) {
    askFor(node, wanted, (answer, partition) => {
      answers[i] = told(wanted, answer, partition);
      openCount -= 1;
      if (openCount === 0) done(answers);
    });
  }
}
