/** Mutants: nodes that operators drain. */
import type { Mutant } from './mutant.ts';

const NO_OPERATOR = 'no operator of the simulator drains a node, and its worlds have no listeners';

export const DRAIN: readonly Mutant[] = [
  {
    id: 'DR1',
    bug: 'a drained node goes on leading',
    law: 'a drained node leads no group that another node can lead',
    edits: [
      { in: 'Draining.#follow', find: "raft.avoidLeading('draining', isOn);", replace: 'void 0;' },
      { in: 'Draining.tick', find: "raft.avoidLeading('draining', true);", replace: 'void 0;' },
    ],
    unitTest: { file: 'node/draining.test.ts', why: NO_OPERATOR },
  },
  {
    id: 'DR2',
    bug: 'the listeners of a drained node accept requests',
    law: 'a drained node accepts no requests',
    edits: [
      {
        in: 'takenRequests',
        find: 'isDraining || core',
        replace: 'core',
      },
    ],
    unitTest: { file: 'node/drained-node.test.ts', why: NO_OPERATOR },
  },
  {
    id: 'DR3',
    bug: 'all nodes may be drained at once',
    law: 'a majority of the nodes accepts requests',
    edits: [
      { in: 'changedDraining', find: 'if (left < undrainedMin(nodes.length))', replace: 'if (left < 0)' },
    ],
    unitTest: { file: 'meta/draining.test.ts', why: NO_OPERATOR },
  },
  {
    id: 'DR4',
    bug: 'a drained node is no longer drained once it announces its address',
    law: 'a node stays drained until an operator ends it',
    edits: [
      {
        in: 'introduced',
        find: '{ ...known, ...node }',
        replace: 'node',
      },
    ],
    unitTest: { file: 'meta/draining.test.ts', why: NO_OPERATOR },
  },
];
