/**
 * The manifest of a backup: a JSON file that is written last. A directory without it is not a backup. What is read
 * is checked here.
 */
import { createHash } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { BackupError } from './backup-error.ts';

/** Name of the file. */
export const MANIFEST_FILE = 'manifest.json';
/** To be changed when the files change in format or meaning. */
export const BACKUP_FORMAT = 1;

/**
 * The snapshot of one group: group 0 is that of the cluster, group p + 1 is partition p. Times are milliseconds of
 * group time.
 */
export interface BackedUpGroup {
  readonly group: number;
  readonly file: string;
  readonly index: number;
  readonly term: number;
  readonly timeMillis: number;
  readonly chunkCount: number;
  /** All chunks together. */
  readonly byteLength: number;
  /** Size of the file. */
  readonly fileBytes: number;
  /** SHA-256 of the file in hex. */
  readonly sha256: string;
  /** For a partition `LimiterStateMachine.hash`, for group 0 a digest of rules and tokens. */
  readonly stateHash: string;
}

/** The contents of the manifest. */
export interface Manifest {
  readonly format: number;
  /** Id of the cluster that was backed up. */
  readonly clusterId: string;
  readonly partitions: number;
  /** Name of the function that maps users to partitions. */
  readonly hash: string;
  /**
   * Version of the rules in group 0, which a restored cluster uses. A partition may have an older one, if a change
   * was in progress.
   */
  readonly rulesVersion: number;
  /** Wall clock time of the machine that took the backup; for people. */
  readonly takenAt: string;
  /** Groups 0 to `partitions`. */
  readonly groups: readonly BackedUpGroup[];
}

/** Name of the file of a group. */
export function fileOf(group: number): string {
  return `group-${group}.snapshot`;
}

interface ReadManifest {
  readonly manifest: Manifest;
  /** SHA-256 of the file in hex. */
  readonly sha256: string;
}

/** Reads the manifest. @throws BackupError if it is missing, invalid or of another format */
export async function readManifest(directory: string): Promise<ReadManifest> {
  const path = join(directory, MANIFEST_FILE);
  let bytes: Buffer;
  try {
    bytes = await readFile(path);
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? String(error.code) : 'unknown';
    throw new BackupError(
      'damaged',
      `${directory} holds no finished backup: ${MANIFEST_FILE} cannot be read (${code})`,
    );
  }
  const sha256 = createHash('sha256').update(bytes).digest('hex');
  return { manifest: parseManifest(bytes.toString('utf8'), path), sha256 };
}

/** Parses a manifest. @param path for messages. @throws BackupError if it is invalid or of another format */
export function parseManifest(text: string, path: string): Manifest {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    throw new BackupError('damaged', `${path} is not JSON`);
  }
  const format = fieldOf(value, 'format');
  if (typeof format === 'number' && format !== BACKUP_FORMAT)
    throw new BackupError('foreign', `${path} has format ${format}; this version reads ${BACKUP_FORMAT}`);
  if (!isManifest(value)) throw new BackupError('damaged', `${path} is not a valid manifest`);
  return value;
}

function fieldOf(value: unknown, field: string): unknown {
  return typeof value === 'object' && value !== null ? (value as Record<string, unknown>)[field] : undefined;
}

function isCount(value: unknown): boolean {
  return Number.isSafeInteger(value) && Number(value) >= 0;
}

function isManifest(value: unknown): value is Manifest {
  const [partitions, groups] = [fieldOf(value, 'partitions'), fieldOf(value, 'groups')];
  const texts = ['clusterId', 'hash', 'takenAt'].every((field) => typeof fieldOf(value, field) === 'string');
  const counts = ['format', 'partitions', 'rulesVersion'].every((field) => isCount(fieldOf(value, field)));
  if (!texts || !counts || !Array.isArray(groups)) return false;
  return groups.length === Number(partitions) + 1 && groups.every(isGroup);
}

const COUNTS = ['index', 'term', 'timeMillis', 'chunkCount', 'byteLength', 'fileBytes'] as const;

function isGroup(value: unknown, group: number): boolean {
  return (
    fieldOf(value, 'group') === group &&
    fieldOf(value, 'file') === fileOf(group) &&
    COUNTS.every((field) => isCount(fieldOf(value, field))) &&
    Number(fieldOf(value, 'index')) >= 1 &&
    Number(fieldOf(value, 'chunkCount')) >= 1 &&
    /^[0-9a-f]{64}$/.test(String(fieldOf(value, 'sha256'))) &&
    /^[0-9a-f]{16,64}$/.test(String(fieldOf(value, 'stateHash')))
  );
}
