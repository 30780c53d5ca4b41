/** Mutants: what a leader answers without the log. */
import type { Mutant } from './mutant.ts';

export const QUICK_ANSWERS: readonly Mutant[] = [
  {
    id: 'LD1',
    bug: 'a key that was denied a moment ago is denied through the log again',
    law: 'denying a spent key needs no entry',
    edits: [
      {
        in: 'QuickAnswers.#mayBeDenied',
        find: 'this.#recentlyDenied.has(request.userId, nowMillis()) ||',
        replace: '',
      },
    ],
    unitTest: {
      file: 'partition/decisions.test.ts',
      why: 'the answer is the same whether the leader or the log denies',
    },
  },
  {
    id: 'LD2',
    bug: 'a request that would be denied is refused as unavailable while the log takes no entries',
    law: 'a request that is denied anyway is denied',
    edits: [{ in: 'QuickAnswers.rejectionOf', find: 'mustJudge || this', replace: 'this' }],
    unitTest: { file: 'partition/bounds.test.ts', why: 'no law asks for a denial while a log is full' },
  },
  {
    id: 'LD3',
    bug: 'each request that is refused for want of room writes an entry',
    law: 'refusing costs no entry',
    edits: [
      { in: 'QuickAnswers.denied', find: 'this.#recentlyDenied.refusedAtCapacity(nowMillis);', replace: '' },
    ],
    unitTest: {
      file: 'partition/capacity.test.ts',
      why: 'the answer is the same whether the leader or the log refuses',
    },
  },
];
