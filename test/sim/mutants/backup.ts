/** Mutants: backups, and clusters that begin with one. */
import type { Mutant } from './mutant.ts';

const NO_BACKUPS = 'no world of the simulator is lost and restored';
const LOST = { file: 'limiter/lost-history.test.ts', why: NO_BACKUPS };
const HISTORIES = { file: 'backup/random-histories.test.ts', why: NO_BACKUPS };
const FOUNDING = { file: 'deployment/founding.test.ts', why: NO_BACKUPS };
const DATABASES = { file: 'deployment/restored-database.test.ts', why: NO_BACKUPS };
const INTERRUPTED = { file: 'backup/interrupted.test.ts', why: NO_BACKUPS };

export const BACKUP: readonly Mutant[] = [
  {
    id: 'BK1',
    bug: 'a snapshot forgets that history was lost',
    law: 'what was granted after a backup is granted to nobody again within its window',
    edits: [
      {
        in: 'StateReader.#readLost',
        find: 'const isOver = lost.sinceMillis > 0;',
        replace: 'const isOver = lost.sinceMillis > 0; lost.throughIndex = 0;',
      },
    ],
    unitTest: LOST,
  },
  {
    id: 'BK2',
    bug: 'group time of a restored group is ahead of the backup',
    law: 'group time never outruns real time',
    edits: [
      {
        in: 'fillGroup',
        find: 'const { group, index, term, timeMillis } = entry;',
        replace: 'const { group, index, term } = entry; const timeMillis = entry.timeMillis + 3_600_000;',
      },
    ],
    unitTest: HISTORIES,
  },
  {
    id: 'BK3',
    bug: 'the manifest is written before the files',
    law: 'a backup that was cut off is none',
    edits: [
      {
        in: 'takeBackup',
        find: 'const manifest = await takeGroups(init);',
        replace:
          "await writeManifest(directory, { format: BACKUP_FORMAT, clusterId: '', partitions: 0, hash: '', rulesVersion: 1, takenAt: '', groups: [] }); const manifest = await takeGroups(init);",
      },
    ],
    unitTest: INTERRUPTED,
  },
  {
    id: 'BK4',
    bug: 'only keys that the backup does not know are saturated',
    law: 'what was granted after a backup is granted to nobody again within its window',
    edits: [
      {
        in: 'KeyTable.unknownMillis',
        find: 'if (this.#lost.throughIndex === 0)',
        replace: 'if (this.#lost.throughIndex === 0 || newestMillis > -Infinity)',
      },
    ],
    unitTest: HISTORIES,
  },
  {
    id: 'BK5',
    bug: 'a restored group tells grants of before again, though they may be refunded',
    law: 'what was refunded is told as granted to nobody',
    edits: [
      {
        in: 'RequestMemory.#isLost',
        find: 'return this.#lost.throughIndex > 0',
        replace: 'return this.#lost.throughIndex < 0',
      },
    ],
    unitTest: HISTORIES,
  },
  {
    id: 'BK6',
    bug: 'timestamps of callers need not be later than those that were admitted before',
    law: 'no window over its limit in the time of callers',
    edits: [
      {
        in: 'LostHistory.throughMillis',
        find: 'Math.max(asked + leftMillis, this.stampsMillis + reachMillis)',
        replace: 'asked + leftMillis',
      },
    ],
    unitTest: HISTORIES,
  },
  {
    id: 'BK7',
    bug: 'a window begins with the backup, not when the group runs again',
    law: 'what was granted after a backup is granted to nobody again within its window',
    edits: [
      {
        in: 'LostHistory.end',
        find: 'this.sinceMillis = Math.max(1, groupMillis);',
        replace: 'this.sinceMillis = 1;',
      },
    ],
    unitTest: HISTORIES,
  },
  {
    id: 'BK8',
    bug: 'a restored group begins without the word that history was lost',
    law: 'what was granted after a backup is granted to nobody again within its window',
    edits: [
      {
        in: 'fillGroup',
        find: '...(isSaturated ? [encodeHistoryLost()] : []),',
        replace: '',
      },
    ],
    unitTest: HISTORIES,
  },
  {
    id: 'BK9',
    bug: 'a container begins as if its backup held all that was ever granted',
    law: 'what was granted after a backup is granted to nobody again within its window',
    edits: [{ in: 'makeDatabase', find: 'isComplete: false', replace: 'isComplete: true' }],
    unitTest: DATABASES,
  },
  {
    id: 'BK10',
    bug: 'a founder of a restored cluster writes where it takes the others to be',
    law: 'replicas of a group that are as far have the same state',
    edits: [
      {
        in: 'makeDatabase',
        find: 'const nodes = facts.founders;',
        replace:
          'const nodes = facts.founders.map((founder) => ({ ...founder, http: config.nodes[founder.id - 1]!.http }));',
      },
    ],
    unitTest: DATABASES,
  },
  {
    id: 'BK11',
    bug: 'a founder makes its database of a backup under the name of a whole one',
    law: 'a restore that was cut off is none',
    edits: [
      {
        in: 'makeDatabase',
        find: "`${database}${UNFINISHED}${randomBytes(4).toString('hex')}`",
        replace: 'database',
      },
    ],
    unitTest: DATABASES,
  },
  {
    id: 'BK12',
    bug: 'founders with different backups found one cluster',
    law: 'replicas of a group that are as far have the same state',
    edits: [{ in: 'refuseDifferent', find: 'own.backup === other.backup', replace: 'own.nodeId > 0' }],
    unitTest: FOUNDING,
  },
];
