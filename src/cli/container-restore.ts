/**
 * Lets a founder begin with a backup: decides whether it should, and creates its database. The database is created in a
 * directory of its own and renamed when it is complete, so a database that a node may have used is never deleted.
 */
import { randomBytes } from 'node:crypto';
import { readdir, rename, rm } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { bootstrapStore } from '../../storage/bootstrap-store.ts';
import { syncDirectory } from '../../storage/files.ts';
import { BackupError } from '../backup/backup-error.ts';
import { type CheckedBackup, checkBackup } from '../backup/check-backup.ts';
import { fillFounder, restorationOf } from '../backup/restore-founder.ts';
import { writeKnownMembers } from '../node/member-cache.ts';
import { factsOf } from '../config/cluster-facts.ts';
import { type ClusterConfig, ConfigError } from '../config/config.ts';
import type { ContainerSettings } from './container-settings.ts';
import type { Founding } from './founding-record.ts';
import { DENIED_TEXT, groupText, soundText } from './backup-command.ts';

const FIELD = 'QUORATE_RESTORE_FROM';
const UNFINISHED = '.restoring-';

type Say = (line: string) => void;

/** True if the node is one of the first nodes of the cluster. */
export function isFounder(nodeId: number, { founders }: Founding): boolean {
  return founders.some(({ id }) => id === nodeId);
}

/**
 * Reads and checks the backup that this container should begin with. Undefined: there is none, or this node is not a
 * founder and gets its data from the others.
 *
 * @param founding the founding, if it is known
 * @throws ConfigError if the backup is damaged, or its number of partitions differs from the setting
 */
export async function backupToRestore(
  settings: ContainerSettings,
  founding: Founding | undefined,
  say: Say,
): Promise<CheckedBackup | undefined> {
  const { nodeId, founders, restoreFrom, partitions: stated } = settings;
  const mayFound = founding === undefined ? nodeId <= founders : isFounder(nodeId, founding);
  if (!mayFound || restoreFrom === undefined) return undefined;
  say(`reads the backup in ${restoreFrom}`);
  const backup = await soundBackup(restoreFrom);
  const { partitions } = backup.manifest;
  if (stated !== undefined && stated !== partitions)
    throw new ConfigError(
      'QUORATE_PARTITIONS',
      `must be ${partitions}, as in the backup of ${FIELD}, or unset: it is ${stated}`,
    );
  say(soundText(backup.manifest));
  return backup;
}

async function soundBackup(directory: string): Promise<CheckedBackup> {
  try {
    return await checkBackup(directory);
  } catch (error) {
    if (!(error instanceof BackupError)) throw error;
    throw new ConfigError(
      FIELD,
      `must be the directory of a backup that this container may read: in ${directory}, ${error.message}`,
    );
  }
}

/**
 * Refuses a setting that would have no effect, so that nobody believes that the cluster was restored. For founders.
 *
 * @throws ConfigError if the cluster was founded without a backup, and the settings name one
 */
export function refuseFoundedWithout(settings: ContainerSettings, founding: Founding): void {
  const { nodeId, restoreFrom } = settings;
  if (restoreFrom === undefined || founding.backup !== undefined || !isFounder(nodeId, founding)) return;
  throw new ConfigError(
    FIELD,
    `must not be set: the cluster was founded without a backup, and only containers with empty volumes take one. Unset it, ` +
      'or give all founders empty volumes',
  );
}

/**
 * Checks the backup before the database of a founder is created.
 *
 * @throws ConfigError unless `backup` is the one that the cluster is founded with
 */
export function refuseOtherBackup(
  settings: ContainerSettings,
  founding: Founding,
  backup: CheckedBackup | undefined,
): void {
  refuseFoundedWithout(settings, founding);
  if (founding.backup === backup?.sha256 || !isFounder(settings.nodeId, founding)) return;
  throw new ConfigError(
    FIELD,
    `must be the backup that the cluster is founded with, whose manifest has the SHA-256 ${founding.backup}: ` +
      (backup === undefined ? 'it is not set' : `that in ${backup.directory} has ${backup.sha256}`),
  );
}

interface NewDatabase {
  readonly nodeId: number;
  readonly incarnation: string;
  readonly config: ClusterConfig;
  /** The backup to fill the database with. Undefined: it begins empty. */
  readonly backup: CheckedBackup | undefined;
}

/**
 * Creates the database of this node. Starts over if an earlier attempt was interrupted.
 *
 * @param database a path at which there is no database yet
 */
export async function makeDatabase(
  database: string,
  { nodeId, incarnation, config, backup }: NewDatabase,
  say: Say,
): Promise<void> {
  const facts = factsOf(config);
  const identity = { nodeId, incarnation, facts };
  await removeUnfinished(database);
  if (backup === undefined) return bootstrapStore(database, identity);
  // All founders must write the same data, so no addresses: each container may know different ones. Nodes report their
  // address when they connect.
  const nodes = facts.founders;
  const restoration = await restorationOf({ backup, facts, nodes, isComplete: false, withoutTokens: false });
  // A random name, so that a second process in the same volume fails instead of mixing its files in.
  const unfinished = `${database}${UNFINISHED}${randomBytes(4).toString('hex')}`;
  await bootstrapStore(unfinished, identity);
  await fillFounder({
    nodeId,
    database: unfinished,
    restoration,
    isDoubted: () => true,
    restored: (each) => say(groupText(each)),
  });
  await writeKnownMembers(unfinished, restoration.record.state);
  await rename(unfinished, database);
  await syncDirectory(dirname(database));
  say(DENIED_TEXT);
}

/** Deletes interrupted attempts. No node ever runs on a directory with such a name. */
async function removeUnfinished(database: string): Promise<void> {
  const volume = dirname(database);
  const prefix = `${basename(database)}${UNFINISHED}`;
  for (const name of await readdir(volume))
    if (name.startsWith(prefix)) await rm(join(volume, name), { recursive: true });
}
