/**
 * The files of a backup: written so that a power cut leaves a whole one under its name or none, and read with everything checked.
 * They hold the ids of users: nobody else on the machine may read them.
 */
import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { chmod, open, readdir, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import type { BackupSnapshot } from '../api/backup.ts';
import { naming } from '../../storage/file-errors.ts';
import { syncDirectory, writeTextSynced } from '../../storage/files.ts';
import { BackupError } from './backup-error.ts';
import { chunksIn, framed } from './chunk-stream.ts';
import { contentsReader, type GroupContents } from './group-contents.ts';
import { type BackedUpGroup, fileOf, type Manifest, MANIFEST_FILE } from './manifest.ts';

const PART_SUFFIX = '.part';
const OURS = /^(group-\d+\.snapshot(\.part)?|manifest\.json\.new)$/;

/**
 * Empties the directory of what an attempt that was cut off left.
 *
 * @throws BackupError if it holds a finished backup, or anything else
 */
export async function claimDirectory(directory: string): Promise<void> {
  const names = await readdir(directory);
  if (names.includes(MANIFEST_FILE))
    throw new BackupError('foreign', `${directory} holds a finished backup; give another directory`);
  const other = names.find((name) => !OURS.test(name));
  if (other !== undefined)
    throw new BackupError(
      'foreign',
      `${directory} holds ${other}, which is of no backup; give another directory`,
    );
  await chmod(directory, 0o700);
  for (const name of names) await rm(join(directory, name));
}

export interface WrittenGroup {
  readonly entry: BackedUpGroup;
  readonly contents: GroupContents;
}

/** Writes one group, and reads it on the way. @throws BackupError if what came is not what `snapshot` says, or no snapshot */
export async function writeGroup(
  directory: string,
  snapshot: BackupSnapshot,
  chunks: AsyncIterable<Uint8Array>,
): Promise<WrittenGroup> {
  const { group, index, term, timeMillis, chunkCount, byteLength } = snapshot;
  const name = fileOf(group);
  const part = join(directory, name + PART_SUFFIX);
  const reader = contentsReader(group);
  const digest = createHash('sha256');
  const seen = { chunks: 0, bytes: 0, fileBytes: 0 };
  const file = await open(part, 'w', 0o600);
  try {
    for await (const chunk of chunks) {
      const bytes = framed(chunk);
      reader.add(chunk);
      digest.update(bytes);
      await naming(part, () => file.writeFile(bytes));
      seen.chunks += 1;
      seen.bytes += chunk.byteLength;
      seen.fileBytes += bytes.byteLength;
    }
    await naming(part, () => file.sync());
  } finally {
    await file.close();
  }
  if (seen.chunks !== chunkCount || seen.bytes !== byteLength)
    throw new BackupError(
      'damaged',
      `the snapshot of group ${group} has ${seen.chunks} chunks of ${seen.bytes} bytes, not ${chunkCount} of ${byteLength}`,
    );
  const contents = reader.complete();
  await rename(part, join(directory, name));
  await syncDirectory(directory);
  const { fileBytes } = seen;
  const sha256 = digest.digest('hex');
  const { stateHash } = contents;
  const entry = {
    group,
    file: name,
    index,
    term,
    timeMillis,
    chunkCount,
    byteLength,
    fileBytes,
    sha256,
    stateHash,
  };
  return { entry, contents };
}

/** The last step: from now on this is a backup. */
export async function writeManifest(directory: string, manifest: Manifest): Promise<void> {
  await writeTextSynced(directory, MANIFEST_FILE, `${JSON.stringify(manifest, null, 2)}\n`);
  await chmod(join(directory, MANIFEST_FILE), 0o600);
}

/** The chunks of one group as they are on disk. @throws BackupError, from the stream, if they are not what was written */
export async function* readGroup(directory: string, entry: BackedUpGroup): AsyncGenerator<Uint8Array> {
  const digest = createHash('sha256');
  let fileBytes = 0;
  const observed = async function* (): AsyncGenerator<Uint8Array> {
    for await (const piece of createReadStream(join(directory, entry.file))) {
      const bytes = piece as Buffer;
      digest.update(bytes);
      fileBytes += bytes.byteLength;
      yield bytes;
    }
  };
  try {
    yield* chunksIn(observed());
  } catch (error) {
    if (error instanceof Error && 'syscall' in error)
      throw new BackupError('damaged', `${entry.file} cannot be read: ${error.message}`);
    throw error;
  }
  if (fileBytes !== entry.fileBytes || digest.digest('hex') !== entry.sha256)
    throw new BackupError('damaged', `${entry.file} is not the file that the manifest names`);
}

/** Reads all of one group and compares it with the manifest. @throws BackupError */
export async function checkedContents(directory: string, entry: BackedUpGroup): Promise<GroupContents> {
  const reader = contentsReader(entry.group);
  for await (const chunk of readGroup(directory, entry)) reader.add(chunk);
  const contents = reader.complete();
  if (contents.stateHash === entry.stateHash) return contents;
  throw new BackupError(
    'damaged',
    `${entry.file} holds a state with the hash ${contents.stateHash}, not ${entry.stateHash}`,
  );
}
