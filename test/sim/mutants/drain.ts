/** Mutants: nodes that operators drain. */
import type { Mutant } from './mutant.ts';

const NO_OPERATOR = 'no operator of the simulator drains a node, and its worlds have no doors';

export const DRAIN: readonly Mutant[] = [
  {
    id: 'DR1',
    bug: 'a node that is drained goes on leading',
    law: 'a drained node leads nothing that others can lead',
    edits: [
      { in: 'Draining.#follow', find: "raft.avoidLeading('draining', isOn);", replace: 'void 0;' },
      { in: 'Draining.tick', find: "raft.avoidLeading('draining', true);", replace: 'void 0;' },
    ],
    unitTest: { file: 'node/draining.test.ts', why: NO_OPERATOR },
  },
  {
    id: 'DR2',
    bug: 'the doors of a node that is drained take requests',
    law: 'a drained node takes no requests',
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
    bug: 'all nodes may be drained',
    law: 'a majority of the nodes takes requests',
    edits: [
      { in: 'changedDraining', find: 'if (left < undrainedMin(nodes.length))', replace: 'if (left < 0)' },
    ],
    unitTest: { file: 'meta/draining.test.ts', why: NO_OPERATOR },
  },
  {
    id: 'DR4',
    bug: 'a node that is drained is so no more once it says where it is',
    law: 'a node stays drained until an operator ends that',
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
