/**
 * Takes a backup of a running cluster: a snapshot of every group, all by one version of the rules. Where they come from is given
 * to it. Cut off at any point it can be repeated: what it left is no backup, and the next attempt starts over.
 */
import { mkdir } from 'node:fs/promises';
import { setTimeout as delay } from 'node:timers/promises';
import type { BackupSnapshot } from '../api/backup.ts';
import { lockDirectory } from '../../storage/lock.ts';
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

/** Of the whole backup, when the rules changed meanwhile. */
const ROUNDS_MAX = 3;
/** Of one group: its snapshot was replaced, its leader was lost, or it has other rules. */
const ATTEMPTS_MAX = 10;
const AGAIN_MILLIS = 500;

/** Resolves when the backup is on disk. @throws BackupError */
export async function takeBackup(init: TakeBackupInit): Promise<Manifest> {
  const { directory, source, print } = init;
  await mkdir(directory, { recursive: true, mode: 0o700 });
  const lock = await lockDirectory(directory);
  try {
    await claimDirectory(directory);
    for (let round = 1; round <= ROUNDS_MAX; round += 1) {
      const version = await source.rulesVersion();
      const manifest = await takeGroups(init, version);
      if (manifest !== undefined && (await source.rulesVersion()) === version) {
        await writeManifest(directory, manifest);
        return manifest;
      }
      print(`the rules changed from version ${version} meanwhile: starting over`);
      await claimDirectory(directory);
    }
  } finally {
    await lock.release();
  }
  throw new BackupError(
    'unsettled',
    `the rules changed during each of ${ROUNDS_MAX} attempts: repeat this when nobody changes them`,
  );
}

/** Undefined if the rules of some group stay others. */
async function takeGroups(init: TakeBackupInit, rulesVersion: number): Promise<Manifest | undefined> {
  const groups: BackedUpGroup[] = [];
  let cluster: Pick<BackupSnapshot, 'clusterId' | 'partitions' | 'hash'> | undefined;
  for (let group = 0; group <= (cluster?.partitions ?? 0); group += 1) {
    const taken = await takeGroup(init, group, rulesVersion);
    if (taken === undefined) return undefined;
    const { clusterId, partitions, hash } = taken.snapshot;
    cluster ??= { clusterId, partitions, hash };
    if (clusterId !== cluster.clusterId || partitions !== cluster.partitions || hash !== cluster.hash)
      throw new BackupError('foreign', `group ${group} was given by a node of another cluster, ${clusterId}`);
    groups.push(taken.entry);
    init.print(
      `group ${group} of ${partitions}: ${taken.entry.fileBytes} bytes, state ${taken.entry.stateHash}`,
    );
  }
  if (cluster === undefined) return undefined;
  const takenAt = new Date().toISOString();
  return { format: BACKUP_FORMAT, ...cluster, rulesVersion, takenAt, groups };
}

async function takeGroup(
  { directory, source, print, againMillis = AGAIN_MILLIS }: TakeBackupInit,
  group: number,
  rulesVersion: number,
): Promise<{ readonly snapshot: BackupSnapshot; readonly entry: BackedUpGroup } | undefined> {
  let problem: unknown;
  for (let attempt = 1; attempt <= ATTEMPTS_MAX; attempt += 1) {
    if (attempt > 1) await delay(againMillis);
    try {
      const { snapshot, chunks } = await source.open(group);
      const { entry, contents } = await writeGroup(directory, snapshot, chunks);
      // Group 0 says nothing of rules that nobody changed since the cluster was created.
      const version = contents.rules?.version ?? (group === 0 ? rulesVersion : 0);
      if (version === rulesVersion) return { snapshot, entry };
      problem = undefined;
      print(`group ${group} decides by version ${version} of the rules, not ${rulesVersion}: asking again`);
    } catch (error) {
      if (!(error instanceof BackupError) || error.what === 'foreign') throw error;
      problem = error;
      print(`group ${group}: ${error.message}: asking again`);
    }
  }
  if (problem !== undefined) throw problem;
  return undefined;
}
