/** Mutants: upgrades: the versions of nodes and of the cluster. */
import type { Mutant } from './mutant.ts';

const ONE_VERSION = 'all nodes of the simulator run one version, and no operator upgrades them';

export const UPGRADE: readonly Mutant[] = [
  {
    id: 'UP1',
    bug: 'a higher version is proposed though one member supports only a lower one',
    law: 'nothing that a member cannot read comes into a log',
    edits: [{ in: 'SpokenVersions.answerTo', find: 'behind.length === 0', replace: 'behind.length >= 0' }],
    unitTest: { file: 'meta/versions.test.ts', why: ONE_VERSION },
  },
  {
    id: 'UP2',
    bug: 'the version of the cluster is lowered',
    law: 'no lower version reads what a higher one wrote',
    edits: [
      {
        in: 'changedVersion',
        find: "if (version < current) return 'lowerVersion';",
        replace: 'void 0;',
      },
    ],
    unitTest: { file: 'meta/versions.test.ts', why: ONE_VERSION },
  },
  {
    id: 'UP3',
    bug: 'a node of an older version is accepted after the upgrade was finished',
    law: 'every member can read everything that is written',
    edits: [{ in: 'Admission.update', find: 'Math.max(min, clusterVersion)', replace: 'min' }],
    unitTest: { file: 'meta/versions.test.ts', why: ONE_VERSION },
  },
];
