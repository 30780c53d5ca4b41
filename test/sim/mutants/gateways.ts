/** Bugs of requests of lists, as gateways ask. The simulator asks none: what is charged for them is charged as for all others. */
import type { Mutant } from './mutant.ts';

const unitTest = {
  file: 'matching/listed-requests.test.ts',
  why: 'the simulator asks by names, and lists become limits before anything is asked of a partition',
};

export const GATEWAYS: readonly Mutant[] = [
  {
    id: 'A30',
    bug: 'lists that are counted under one key are charged once',
    law: 'what a gateway asks for is charged, or nothing is granted',
    edits: [{ in: 'addTo', find: 'else sum.cost += limit.cost;', replace: '' }],
    unitTest,
  },
  {
    id: 'A31',
    bug: 'a list of cost 0 that has nothing left denies nothing',
    law: 'a list that is only looked at denies the request where nothing is left',
    edits: [
      {
        in: 'askListed',
        find: '[...peeked.values()].some(({ isOver }) => isOver)',
        replace: 'false',
      },
    ],
    unitTest,
  },
  {
    id: 'A32',
    bug: 'a cost that no limit has room for is found by nobody',
    law: 'what a gateway asks for is charged, or nothing is granted',
    edits: [
      {
        in: 'listedLimits',
        find: 'cost > COST_MAX && settle !== true',
        replace: 'cost < 0 && settle !== true',
      },
    ],
    unitTest,
  },
];
