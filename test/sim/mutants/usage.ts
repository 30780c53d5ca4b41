/** Mutants: what is counted of answers, and told of it. No world of the simulator asks for figures. */
import type { Mutant } from './mutant.ts';

const WHY = 'figures decide nothing, and no world asks for them';

export const USAGE: readonly Mutant[] = [
  {
    id: 'U1',
    bug: 'whoever takes the counter of another key keeps the error of that one, not its count',
    edits: [{ in: 'SpaceSaving.add', find: 'this.#errors[counter] = before;', replace: '' }],
    unitTest: { file: 'usage/space-saving.test.ts', why: WHY },
  },
  {
    id: 'U2',
    bug: 'a minute begins with what was counted in its place a day before',
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
    bug: 'a key that a list does not name is taken for one that was never counted there',
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
    bug: 'what a key was counted is forgotten with it, and bounds its cell no more',
    edits: [
      { in: 'SpaceSaving.#freeLeast', find: 'this.#tailOf[cell] = this.#count(counter);', replace: '' },
    ],
    unitTest: { file: 'usage/space-saving.test.ts', why: WHY },
  },
  {
    id: 'U5',
    bug: 'a cell that still has a kept key is taken for one that has none',
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
