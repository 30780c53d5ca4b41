/** Mutants: versions of nodes, and of the cluster. */
import type { Mutant } from './mutant.ts';

const ONE_VERSION = 'all nodes of the simulator run one version, and no operator upgrades them';

export const UPGRADE: readonly Mutant[] = [
  {
    id: 'UP1',
    bug: 'a higher version is proposed though a member speaks less',
    law: 'nothing comes into a log that a member cannot read',
    edits: [{ in: 'SpokenVersions.answerTo', find: 'behind.length === 0', replace: 'behind.length >= 0' }],
    unitTest: { file: 'meta/versions.test.ts', why: ONE_VERSION },
  },
  {
    id: 'UP2',
    bug: 'the version of the cluster is lowered',
    law: 'what was written by a higher version is read by no lower one',
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
    bug: 'a node of a version before is welcome after the upgrade was finished',
    law: 'who takes part reads all that is written',
    edits: [{ in: 'Admission.update', find: 'Math.max(min, clusterVersion)', replace: 'min' }],
    unitTest: { file: 'meta/versions.test.ts', why: ONE_VERSION },
  },
];
