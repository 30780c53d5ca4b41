/** Mutants: while no leader of a partition answers, a node refuses requests at once and searches for the leader. */
import type { Mutant } from './mutant.ts';

const WHY = 'while something is broken, a denial too many is legal';

export const BREAKER: readonly Mutant[] = [
  {
    id: 'CB1',
    bug: 'requests are refused at once though a leader was heard since',
    law: 'a request that can be decided is decided',
    edits: [{ in: 'Breaker.heard', find: 'this.#searchBy = undefined;', replace: '' }],
    unitTest: {
      file: 'router/breaker.test.ts',
      why: WHY,
    },
  },
  {
    id: 'CB2',
    bug: 'while requests are refused at once, no node searches for the leader',
    law: 'a request that can be decided is decided',
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
    bug: 'reservations made in vain are not given back while requests are refused at once',
    law: 'a request that is not granted leaves nothing charged',
    edits: [
      {
        in: 'Router.ask',
        find: "request.ask !== 'refund' && !this.#lookup(partition).breaker.admits()",
        replace: '!this.#lookup(partition).breaker.admits()',
      },
    ],
    unitTest: {
      file: 'router/breaker.test.ts',
      why: 'a reservation that stays is counted as one that stayed, and that is legal',
    },
  },
  {
    id: 'CB4',
    bug: 'the node searches for the leader once, and not again when nobody has answered',
    law: 'a request that can be decided is decided',
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
