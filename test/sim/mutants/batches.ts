/** Mutants: many requests in one body: each is decided for itself, and answered in its place. */
import type { Mutant } from './mutant.ts';

const KEPT = 'answers[i] = reported(wanted, answer, partition);';

export const BATCHES: readonly Mutant[] = [
  {
    id: 'BA1',
    bug: 'the answers of a batch stand in the order in which they came',
    law: 'each request of a batch is answered in its place',
    edits: [{ in: 'askBatch', find: KEPT, replace: 'answers.push(reported(wanted, answer, partition));' }],
  },
  {
    id: 'BA2',
    bug: 'one request of a batch that can never be decided is the answer to all of them',
    law: 'each request of a batch is decided for itself',
    edits: [
      {
        in: 'askBatch',
        find: KEPT,
        replace: `${KEPT} if (answer.kind === 'invalid') answers.fill(answers[i]!, 0, requests.length);`,
      },
    ],
  },
  {
    id: 'BA3',
    bug: 'a request id that comes twice at once is charged twice',
    law: 'while a grant is remembered its request gets the same receipt',
    edits: [
      {
        in: 'Waiters.maybeJoin',
        find: 'if (earlier === undefined) return false;',
        replace: 'if (earlier === undefined || earlier !== undefined) return false;',
      },
      {
        in: 'Judgement.isRepeated',
        find: 'if (this.#repeated === NONE) return false;',
        replace:
          'if (this.#repeated === NONE) return false; if (state.memory.view(this.#repeated).decidedIndex === state.applied.index) return false;',
      },
    ],
  },
];
