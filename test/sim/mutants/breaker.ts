/** Mutants: while the leader of a partition answers nobody, requests are refused at once, and the node looks for it. */
import type { Mutant } from './mutant.ts';

const WHY = 'a denial too many while something is broken is legal';

export const BREAKER: readonly Mutant[] = [
  {
    id: 'CB1',
    bug: 'requests are refused at once though a leader has spoken since',
    law: 'who can be decided need not wait',
    edits: [{ in: 'Breaker.heard', find: 'this.#searchBy = undefined;', replace: '' }],
    unitTest: {
      file: 'router/breaker.test.ts',
      why: WHY,
    },
  },
  {
    id: 'CB2',
    bug: 'while requests are refused at once, nobody looks for the leader',
    law: 'who can be decided need not wait',
    edits: [
      {
        in: 'Router.tick',
        find: 'if (key !== undefined) this.#searchForLeader(partition, key);',
        replace: '',
      },
    ],
    unitTest: {
      file: 'router/breaker.test.ts',
      why: WHY,
    },
  },
  {
    id: 'CB3',
    bug: 'what is reserved in vain is not given back while requests are refused at once',
    law: 'who is not granted leaves nothing charged',
    edits: [
      {
        in: 'Router.ask',
        find: "request.ask !== 'refund' && !this.#lookup(partition).breaker.admits()",
        replace: '!this.#lookup(partition).breaker.admits()',
      },
    ],
    unitTest: {
      file: 'router/breaker.test.ts',
      why: 'a reservation that is left is counted as left, and that is legal',
    },
  },
  {
    id: 'CB4',
    bug: 'the node looks for the leader once, and not again when nobody has answered',
    law: 'who can be decided need not wait',
    edits: [
      {
        in: 'Breaker.searchEnded',
        find: "if (this.state === 'open') this.#searchDue = this.#ticks + this.#limits.pauseTicks;",
        replace: '',
      },
    ],
    unitTest: {
      file: 'router/breaker.test.ts',
      why: WHY,
    },
  },
];
