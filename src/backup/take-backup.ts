/**
 * Takes a backup of a running cluster: a snapshot of every group and one version of the rules. An interrupted
 * backup can be repeated; what it left is not a backup, and the next attempt starts over.
 */
import { mkdir } from 'node:fs/promises';
import { setTimeout as delay } from 'node:timers/promises';
import type { BackupSnapshot } from '../api/backup.ts';
import { lockDirectory } from '../../storage/lock.ts';
import { META_GROUP } from '../meta/cluster-placement.ts';
import { BackupError } from './backup-error.ts';
import { claimDirectory, writeGroup, writeManifest } from './backup-files.ts';
import { type BackedUpGroup, BACKUP_FORMAT, type Manifest } from './manifest.ts';

/** Access to a cluster. */
export interface BackupSource {
  /** Version of the rules in force. */
  rulesVersion(): Promise<number>;
  /** A current snapshot of this group, from its leader. Rejects with `BackupError` if no node gives one. */
  open(
    group: number,
  ): Promise<{ readonly snapshot: BackupSnapshot; readonly chunks: AsyncIterable<Uint8Array> }>;
}

interface TakeBackupInit {
  readonly directory: string;
  readonly source: BackupSource;
  readonly print: (line: string) => void;
  /** Pause between two attempts. */
  readonly againMillis?: number;
}

/** Attempts per group. One fails if the snapshot was replaced, the leader was lost, or the rules are too old. */
const ATTEMPTS_MAX = 10;
const AGAIN_MILLIS = 500;

/** Takes a backup. Resolves when it is on disk. @throws BackupError if that is not possible */
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
  /** 0: the partition has decided nothing yet. */
  readonly rulesVersion: number;
}

/**
 * Takes the partitions first, with the rules they have then, and then group 0. Partitions get their rules from
 * group 0, so its version is at least as new; that version becomes the version of the backup.
 */
async function takeGroups(init: TakeBackupInit): Promise<Manifest> {
  const { source, print } = init;
  // Ask first: the backup must have the rules that were in force when it began, or newer ones.
  let newestVersion = await source.rulesVersion();
  const groups: BackedUpGroup[] = [];
  let cluster: Pick<BackupSnapshot, 'clusterId' | 'partitions' | 'hash'> | undefined;
  const take = async (group: number, rulesVersionMin: number): Promise<TakenGroup> => {
    const taken = await takeGroup(init, group, rulesVersionMin);
    const { clusterId, partitions, hash } = taken.snapshot;
    cluster ??= { clusterId, partitions, hash };
    if (clusterId !== cluster.clusterId || partitions !== cluster.partitions || hash !== cluster.hash)
      throw new BackupError('foreign', `group ${group} came from a node of another cluster, ${clusterId}`);
    const { fileBytes, stateHash } = taken.entry;
    print(`${contentsText(group)}: ${fileBytes} bytes, state ${stateHash}`);
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

/** What a group holds, for people: partitions are numbered from 0, and their groups from 1. */
export function contentsText(group: number): string {
  return `group ${group} (${group === META_GROUP ? 'nodes, rules and tokens' : `partition ${group - 1}`})`;
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
      // The node was a leader once and does not know that another one leads now.
      problem = new BackupError(
        'unreachable',
        `it has version ${rulesVersion} of the rules, but version ${rulesVersionMin} is in force`,
      );
    } catch (error) {
      if (!(error instanceof BackupError) || error.what === 'foreign') throw error;
      problem = error;
    }
    print(`${contentsText(group)}: ${problem.message}: asking again`);
  }
  throw problem ?? new BackupError('unreachable', `no node gave a snapshot of group ${group}`);
}
