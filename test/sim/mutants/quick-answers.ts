/** Mutants: what a leader tells without the log. */
import type { Mutant } from './mutant.ts';

export const QUICK_ANSWERS: readonly Mutant[] = [
  {
    id: 'LD1',
    bug: 'a key that was denied a moment ago is denied by the log again',
    law: 'denials of spent keys need no entry',
    edits: [
      {
        in: 'QuickAnswers.#mayBeDenied',
        find: 'this.#recentlyDenied.has(request.userId, nowMillis()) ||',
        replace: '',
      },
    ],
    unitTest: { file: 'partition/decisions.test.ts', why: 'whoever denies, the answer is the same' },
  },
  {
    id: 'LD2',
    bug: 'what is spent is refused as unavailable where the log cannot be asked',
    law: 'what is denied anyway is denied',
    edits: [{ in: 'QuickAnswers.rejectionOf', find: 'isLast || this', replace: 'this' }],
    unitTest: { file: 'partition/bounds.test.ts', why: 'no law asks for a denial while a log is full' },
  },
  {
    id: 'LD3',
    bug: 'who finds no room in a full state is refused by an entry each time',
    law: 'refusing costs no entry',
    edits: [
      { in: 'QuickAnswers.denied', find: 'this.#recentlyDenied.refusedAtCapacity(nowMillis);', replace: '' },
    ],
    unitTest: { file: 'partition/capacity.test.ts', why: 'whoever refuses, the answer is the same' },
  },
];
