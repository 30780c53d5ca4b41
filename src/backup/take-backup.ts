/**
 * Takes a backup of a running cluster: a snapshot of every group, and one version of the rules. Where they come from is given to
 * it. Cut off at any point it can be repeated: what it left is no backup, and the next attempt starts over.
 */
import { mkdir } from 'node:fs/promises';
import { setTimeout as delay } from 'node:timers/promises';
import type { BackupSnapshot } from '../api/backup.ts';
import { lockDirectory } from '../../storage/lock.ts';
import { META_GROUP } from '../meta/cluster-placement.ts';
import { BackupError } from './backup-error.ts';
import { claimDirectory, writeGroup, writeManifest } from './backup-files.ts';
import { type BackedUpGroup, BACKUP_FORMAT, type Manifest } from './manifest.ts';

/** The cluster, as a backup needs it. */
export interface BackupSource {
  /** Of the rules in force. */
  rulesVersion(): Promise<number>;
  /** A snapshot of this group as of now, from whoever leads it. Rejects with `BackupError` if nobody gives one. */
  open(
    group: number,
  ): Promise<{ readonly snapshot: BackupSnapshot; readonly chunks: AsyncIterable<Uint8Array> }>;
}

interface TakeBackupInit {
  readonly directory: string;
  readonly source: BackupSource;
  readonly print: (line: string) => void;
  /** Between two attempts. */
  readonly againMillis?: number;
}

/** How often one group is asked for: its snapshot was replaced, its leader was lost, or it has older rules than it should. */
const ATTEMPTS_MAX = 10;
const AGAIN_MILLIS = 500;

/** Resolves when the backup is on disk. @throws BackupError */
export async function takeBackup(init: TakeBackupInit): Promise<Manifest> {
  const { directory } = init;
  await mkdir(directory, { recursive: true, mode: 0o700 });
  const lock = await lockDirectory(directory);
  try {
    await claimDirectory(directory);
    const manifest = await takeGroups(init);
    await writeManifest(directory, manifest);
    return manifest;
  } finally {
    await lock.release();
  }
}

interface TakenGroup {
  readonly snapshot: BackupSnapshot;
  readonly entry: BackedUpGroup;
  /** 0: it decided nothing yet. */
  readonly rulesVersion: number;
}

/**
 * The partitions, whatever rules they decide by, and then group 0. They have their rules from it, so its rules are none older than
 * theirs: that one version is the backup's.
 */
async function takeGroups(init: TakeBackupInit): Promise<Manifest> {
  const { source, print } = init;
  // Asked first: what was in force when the backup began is in it, or something newer.
  let newestVersion = await source.rulesVersion();
  const groups: BackedUpGroup[] = [];
  let cluster: Pick<BackupSnapshot, 'clusterId' | 'partitions' | 'hash'> | undefined;
  const take = async (group: number, rulesVersionMin: number): Promise<TakenGroup> => {
    const taken = await takeGroup(init, group, rulesVersionMin);
    const { clusterId, partitions, hash } = taken.snapshot;
    cluster ??= { clusterId, partitions, hash };
    if (clusterId !== cluster.clusterId || partitions !== cluster.partitions || hash !== cluster.hash)
      throw new BackupError('foreign', `group ${group} was given by a node of another cluster, ${clusterId}`);
    const { fileBytes, stateHash } = taken.entry;
    print(`group ${group} of ${partitions}: ${fileBytes} bytes, state ${stateHash}`);
    return taken;
  };
  let partitionCount = 1;
  for (let group = 1; group <= partitionCount; group += 1) {
    const { snapshot, entry, rulesVersion } = await take(group, 0);
    partitionCount = snapshot.partitions;
    newestVersion = Math.max(newestVersion, rulesVersion);
    groups.push(entry);
  }
  const meta = await take(META_GROUP, newestVersion);
  const { clusterId, partitions, hash } = meta.snapshot;
  return {
    format: BACKUP_FORMAT,
    clusterId,
    partitions,
    hash,
    rulesVersion: meta.rulesVersion,
    takenAt: new Date().toISOString(),
    groups: [meta.entry, ...groups],
  };
}

async function takeGroup(
  { directory, source, print, againMillis = AGAIN_MILLIS }: TakeBackupInit,
  group: number,
  rulesVersionMin: number,
): Promise<TakenGroup> {
  let problem: BackupError | undefined;
  for (let attempt = 1; attempt <= ATTEMPTS_MAX; attempt += 1) {
    if (attempt > 1) await delay(againMillis);
    try {
      const { snapshot, chunks } = await source.open(group);
      const { entry, contents } = await writeGroup(directory, snapshot, chunks);
      const rulesVersion = contents.rules?.version ?? 0;
      if (rulesVersion >= rulesVersionMin) return { snapshot, entry, rulesVersion };
      // Whoever gave it led once, and does not know that others do.
      problem = new BackupError(
        'unreachable',
        `it has version ${rulesVersion} of the rules, and ${rulesVersionMin} was in force`,
      );
    } catch (error) {
      if (!(error instanceof BackupError) || error.what === 'foreign') throw error;
      problem = error;
    }
    print(`group ${group}: ${problem.message}: asking again`);
  }
  throw problem ?? new BackupError('unreachable', `group ${group} was not given`);
}
