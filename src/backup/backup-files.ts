/**
 * Reads and writes the files of a backup. Writing is crash-safe: after a power cut there is a complete file under
 * its name or none. Reading checks everything. The files contain ids of users, so only their owner may read them.
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
 * Prepares the directory and removes the files of an interrupted attempt.
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
      `${directory} holds ${other}, which is not part of a backup; give another directory`,
    );
  await chmod(directory, 0o700);
  for (const name of names) await rm(join(directory, name));
}

/** A group that was written, and what its snapshot contains. */
export interface WrittenGroup {
  readonly entry: BackedUpGroup;
  readonly contents: GroupContents;
}

/**
 * Writes one group, and reads its snapshot on the way. @throws BackupError if the chunks do not match `snapshot`,
 * or are not a valid snapshot
 */
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

/** Writes the manifest as the last step; it makes the directory a backup. */
export async function writeManifest(directory: string, manifest: Manifest): Promise<void> {
  await writeTextSynced(directory, MANIFEST_FILE, `${JSON.stringify(manifest, null, 2)}\n`);
  await chmod(join(directory, MANIFEST_FILE), 0o600);
}

/**
 * The chunks of one group as they are on disk. @throws BackupError while iterating, if they are not what was
 * written
 */
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

/** Reads a whole group and compares it with the manifest. @throws BackupError if it differs */
export async function checkedContents(directory: string, entry: BackedUpGroup): Promise<GroupContents> {
  const reader = contentsReader(entry.group);
  for await (const chunk of readGroup(directory, entry)) reader.add(chunk);
  const contents = reader.complete();
  if (contents.stateHash === entry.stateHash) return contents;
  throw new BackupError(
    'damaged',
    `${entry.file} holds a state with hash ${contents.stateHash}, not ${entry.stateHash}`,
  );
}
