/** Mutants: usage figures: how answers are counted and reported. No world of the simulator asks for them. */
import type { Mutant } from './mutant.ts';

const WHY = 'usage figures decide nothing, and no world asks for them';

export const USAGE: readonly Mutant[] = [
  {
    id: 'U1',
    bug: 'a key that takes over the counter of another key keeps the error of that key, instead of taking its count as the error',
    edits: [{ in: 'SpaceSaving.add', find: 'this.#errors[counter] = before;', replace: '' }],
    unitTest: { file: 'usage/space-saving.test.ts', why: WHY },
  },
  {
    id: 'U2',
    bug: 'a minute begins with the counts of the same minute a day before',
    edits: [
      {
        in: 'UsageTable.turnTo',
        find: 'for (const { minutes } of this.#rows) minutes.fill(0, this.#offset, this.#offset + WIDTH);',
        replace: '',
      },
    ],
    unitTest: { file: 'usage/usage-table.test.ts', why: WHY },
  },
  {
    id: 'U3',
    bug: 'a key that is missing from a list is taken for one that was never counted there',
    edits: [
      {
        in: 'cut',
        find: 'Math.max(othersMax, sorted[max]?.count ?? 0)',
        replace: 'othersMax',
      },
    ],
    unitTest: { file: 'usage/space-saving.test.ts', why: WHY },
  },
  {
    id: 'U4',
    bug: 'when a key is forgotten, its count no longer bounds the counts of its cell',
    edits: [
      { in: 'SpaceSaving.#freeLeast', find: 'this.#tailOf[cell] = this.#count(counter);', replace: '' },
    ],
    unitTest: { file: 'usage/space-saving.test.ts', why: WHY },
  },
  {
    id: 'U5',
    bug: 'a cell that still holds a kept key is taken for one without any',
    edits: [
      {
        in: 'SpaceSaving.#freeLeast',
        find: 'this.#keptOf[cell] = (this.#keptOf[cell] ?? 0) - 1;',
        replace: 'this.#keptOf[cell] = 0;',
      },
    ],
    unitTest: { file: 'usage/space-saving.test.ts', why: WHY },
  },
];
