/** Mutants: batches: each request in one is decided by itself and answered at its own position. */
import type { Mutant } from './mutant.ts';

const KEPT = 'answers[i] = reported(question, answer, partition);';

export const BATCHES: readonly Mutant[] = [
  {
    id: 'BA1',
    bug: 'a batch is answered in the order in which its answers arrived, not in the order of its requests',
    law: 'each request of a batch is answered at its own position',
    edits: [{ in: 'askBatch', find: KEPT, replace: 'answers.push(reported(question, answer, partition));' }],
  },
  {
    id: 'BA2',
    bug: 'one invalid request of a batch makes all of them invalid',
    law: 'each request of a batch is decided by itself',
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
    bug: 'two requests with one id that arrive together are both charged',
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
