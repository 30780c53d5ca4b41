/**
 * Mutants: requests by lists of descriptors, as gateways send them. The simulator sends none; they are charged like all
 * others.
 */
import type { Mutant } from './mutant.ts';

const unitTest = {
  file: 'matching/listed-requests.test.ts',
  why: 'the simulator asks by keys, and lists of descriptors become limits before anything is asked of a partition',
};

export const GATEWAYS: readonly Mutant[] = [
  {
    id: 'A30',
    bug: 'two lists of descriptors that are counted under one key are charged once',
    law: 'a gateway is charged for everything that it asks, or nothing is granted',
    edits: [{ in: 'addTo', find: 'else sum.cost += limit.cost;', replace: '' }],
    unitTest,
  },
  {
    id: 'A31',
    bug: 'a list of cost 0 does not deny when nothing is left',
    law: 'a list that only peeks denies the request when nothing is left',
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
    bug: 'a cost that is too large for any limit is not detected',
    law: 'a gateway is charged for everything that it asks, or nothing is granted',
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
