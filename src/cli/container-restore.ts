/**
 * A founder of a cluster that begins with a backup: whether it is to, and the database that it begins with. That one is made in a
 * directory of its own, which gets the name of a database when it is whole. So nothing that a node may have run on is ever deleted.
 */
import { randomBytes } from 'node:crypto';
import { readdir, rename, rm } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { bootstrapStore } from '../../storage/bootstrap-store.ts';
import { syncDirectory } from '../../storage/files.ts';
import { BackupError } from '../backup/backup-error.ts';
import { type CheckedBackup, checkBackup } from '../backup/check-backup.ts';
import { fillFounder, restorationOf } from '../backup/restore-founder.ts';
import { factsOf } from '../config/cluster-facts.ts';
import { type ClusterConfig, ConfigError } from '../config/config.ts';
import type { ContainerSettings } from './container-settings.ts';
import type { Founding } from './founding-record.ts';
import { DENIED_TEXT, groupText, soundText } from './restored-text.ts';

const FIELD = 'QUORATE_RESTORE_FROM';
const UNFINISHED = '.restoring-';

type Say = (line: string) => void;

export function isFounder(nodeId: number, { founders }: Founding): boolean {
  return founders.some(({ id }) => id === nodeId);
}

/**
 * The backup that this container is to begin with, read to its end. Undefined: there is none, or it is no founder, which has
 * everything from the others.
 *
 * @param founding as far as anybody knows it
 * @throws ConfigError if it is not sound, or has another number of partitions than is stated
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
 * A founder asks it: nobody is to take its cluster for restored.
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
 * A founder asks it before its database is made.
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
  /** What it is filled with. Undefined: it is empty. */
  readonly backup: CheckedBackup | undefined;
}

/** @param database of which there is none yet. Starts over if an earlier attempt was cut off. */
export async function makeDatabase(
  database: string,
  { nodeId, incarnation, config, backup }: NewDatabase,
  say: Say,
): Promise<void> {
  const facts = factsOf(config);
  const identity = { nodeId, incarnation, facts };
  await removeUnfinished(database);
  if (backup === undefined) return bootstrapStore(database, identity);
  // All founders write the same, so no addresses: those may be told otherwise elsewhere. Each says its own when it connects.
  const nodes = facts.founders;
  const restoration = await restorationOf({ backup, facts, nodes, isComplete: false, withoutTokens: false });
  // Another process that makes one in the same volume finds its own gone, and ends.
  const unfinished = `${database}${UNFINISHED}${randomBytes(4).toString('hex')}`;
  await bootstrapStore(unfinished, identity);
  await fillFounder({
    nodeId,
    database: unfinished,
    restoration,
    isDoubted: () => true,
    restored: (each) => say(groupText(each)),
  });
  await rename(unfinished, database);
  await syncDirectory(dirname(database));
  say(DENIED_TEXT);
}

/** No node ever runs on what has such a name. */
async function removeUnfinished(database: string): Promise<void> {
  const volume = dirname(database);
  const prefix = `${basename(database)}${UNFINISHED}`;
  for (const name of await readdir(volume))
    if (name.startsWith(prefix)) await rm(join(volume, name), { recursive: true });
}
