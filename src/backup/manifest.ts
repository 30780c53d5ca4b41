/**
 * What a backup says of itself: one JSON file, written when all others are on disk. A directory without it is no backup. What
 * is read is checked; nothing is decided.
 */
import { createHash } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { BackupError } from './backup-error.ts';

export const MANIFEST_FILE = 'manifest.json';
/** Another form of the files, or another meaning, needs another number. */
export const BACKUP_FORMAT = 1;

/** A snapshot of one group; 0 is that of the cluster, p + 1 that of partition p. Times in milliseconds, of group time. */
export interface BackedUpGroup {
  readonly group: number;
  readonly file: string;
  readonly index: number;
  readonly term: number;
  readonly timeMillis: number;
  readonly chunkCount: number;
  /** Of all chunks. */
  readonly byteLength: number;
  /** Of the file. */
  readonly fileBytes: number;
  /** Of the file, in hex. */
  readonly sha256: string;
  /** Of what the replicas of a partition know, as `LimiterStateMachine.hash`; of group 0 a digest of rules and tokens. */
  readonly stateHash: string;
}

export interface Manifest {
  readonly format: number;
  /** Of the cluster that it was taken of. */
  readonly clusterId: string;
  readonly partitions: number;
  /** Names the function that maps users to partitions. */
  readonly hash: string;
  /** The version that group 0 has, by which a restored cluster decides. A partition may have an older one, if a change was on its way. */
  readonly rulesVersion: number;
  /** By the wall clock of whoever took it; for people. */
  readonly takenAt: string;
  /** From 0 to `partitions`. */
  readonly groups: readonly BackedUpGroup[];
}

export function fileOf(group: number): string {
  return `group-${group}.snapshot`;
}

interface ReadManifest {
  readonly manifest: Manifest;
  /** The SHA-256 of the file, in hex. */
  readonly sha256: string;
}

/** @throws BackupError if there is none, or it is none that this version wrote */
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

/** @param path for people. @throws BackupError */
export function parseManifest(text: string, path: string): Manifest {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    throw new BackupError('damaged', `${path} is not JSON`);
  }
  const format = fieldOf(value, 'format');
  if (typeof format === 'number' && format !== BACKUP_FORMAT)
    throw new BackupError('foreign', `${path} is of format ${format}; this version reads ${BACKUP_FORMAT}`);
  if (!isManifest(value)) throw new BackupError('damaged', `${path} is not what a backup says of itself`);
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
