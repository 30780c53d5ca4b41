/** Mutants: backups, and clusters that start from one. */
import type { Mutant } from './mutant.ts';

const NO_BACKUPS = 'no cluster of the simulator is lost and restored';
const LOST = { file: 'limiter/lost-history.test.ts', why: NO_BACKUPS };
const HISTORIES = { file: 'backup/random-histories.test.ts', why: NO_BACKUPS };
const FOUNDING = { file: 'deployment/founding.test.ts', why: NO_BACKUPS };
const DATABASES = { file: 'deployment/restored-database.test.ts', why: NO_BACKUPS };
const INTERRUPTED = { file: 'backup/interrupted.test.ts', why: NO_BACKUPS };

export const BACKUP: readonly Mutant[] = [
  {
    id: 'BK1',
    bug: 'a snapshot forgets that history was lost',
    law: 'a grant made after a backup is not granted again within its window',
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
    law: 'a backup that was cut off is no backup',
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
    bug: 'after a restore only keys that are missing in the backup count as spent',
    law: 'a grant made after a backup is not granted again within its window',
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
    bug: 'a restored group answers retries with old grants, though they may have been refunded since',
    law: 'a refunded grant is given to nobody',
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
    bug: 'after a restore, timestamps of callers may be earlier than those that were admitted before',
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
    bug: 'after a restore, a window begins with the backup, not when the group runs again',
    law: 'a grant made after a backup is not granted again within its window',
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
    bug: 'a restored group is not marked as one that lost history',
    law: 'a grant made after a backup is not granted again within its window',
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
    bug: 'a container starts as if its backup held everything that was ever granted',
    law: 'a grant made after a backup is not granted again within its window',
    edits: [{ in: 'makeDatabase', find: 'isComplete: false', replace: 'isComplete: true' }],
    unitTest: DATABASES,
  },
  {
    id: 'BK10',
    bug: 'each founder of a restored cluster stores its own view of the addresses of the others',
    law: 'replicas that have applied the same entries have the same state',
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
    bug: 'a founder builds its database from a backup under the name of a complete one',
    law: 'a restore that was cut off is no database',
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
    bug: 'founders with different backups form one cluster',
    law: 'replicas that have applied the same entries have the same state',
    edits: [{ in: 'refuseDifferent', find: 'own.backup === other.backup', replace: 'own.nodeId > 0' }],
    unitTest: FOUNDING,
  },
];
