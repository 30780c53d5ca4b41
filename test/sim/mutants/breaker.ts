/** Mutants: while the leader of a partition answers nobody, requests are refused at once, and one looks for it. */
import type { Mutant } from './mutant.ts';

const WHY = 'a denial too many while something is broken is legal, and the breaker closes by itself';

export const BREAKER: readonly Mutant[] = [
  {
    id: 'CB1',
    bug: 'requests are refused at once though a leader has spoken since',
    law: 'who can be decided need not wait',
    edits: [{ in: 'Breaker.heard', find: 'this.#openUntil = undefined;', replace: '' }],
    unitTest: {
      file: 'router/breaker.test.ts',
      why: WHY,
    },
  },
  {
    id: 'CB2',
    bug: 'while requests are refused at once, none goes on to look for the leader',
    law: 'who can be decided need not wait',
    edits: [
      {
        in: 'Breaker.admits',
        find: 'this.#probe = request;',
        replace: "if (state === 'open') return false;",
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
        find: "request.ask !== 'refund' && !this.#lookup(partition).breaker.admits(open)",
        replace: '!this.#lookup(partition).breaker.admits(open)',
      },
    ],
    unitTest: {
      file: 'router/breaker.test.ts',
      why: 'a reservation that is left is counted as left, and that is legal',
    },
  },
];
