/**
 * Reads and writes the small files beside LevelDB's, so that a power cut leaves either the old or the new content.
 * Never opens the file LOCK: closing any descriptor of it releases LevelDB's lock on it.
 */
import { open, readFile, readdir, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { crc32 } from 'node:zlib';
import { DamageFound } from './errors.ts';
import { naming } from './file-errors.ts';

/** Exists while a bootstrap is not finished. The database was never used then, so nothing depends on it. */
export const BOOTSTRAPPING_FILE = 'BOOTSTRAPPING';
/** Exists once damage was found, and describes it. The directory is refused forever. */
export const DAMAGED_FILE = 'DAMAGED';
/** Contains a batch number that the store is known to have reached: a lower bound, see `writeFloor`. */
const FLOOR_FILE = 'FLOOR';
const TEMPORARY_SUFFIX = '.new';

const LEVELDB_FILE = /^(CURRENT|LOCK|LOG|LOG\.old|MANIFEST-\d+|\d+\.(log|ldb|sst|dbtmp))$/;

/** The names of the database files in a directory, LevelDB's and ours; undefined if the directory does not exist. */
export async function storeFiles(directory: string): Promise<string[] | undefined> {
  let names: string[];
  try {
    names = await readdir(directory);
  } catch (error) {
    if (isErrno(error, 'ENOENT')) return undefined;
    throw error;
  }
  return names.filter((name) => LEVELDB_FILE.test(name) || isOurs(name));
}

/** Whether the directory contains a database that may have been used. One whose bootstrap did not finish was not. */
export async function hasStore(directory: string): Promise<boolean> {
  const names = (await storeFiles(directory)) ?? [];
  return names.some((name) => !name.startsWith(BOOTSTRAPPING_FILE)) && !names.includes(BOOTSTRAPPING_FILE);
}

function isOurs(name: string): boolean {
  const plain = name.endsWith(TEMPORARY_SUFFIX) ? name.slice(0, -TEMPORARY_SUFFIX.length) : name;
  return plain === BOOTSTRAPPING_FILE || plain === DAMAGED_FILE || plain === FLOOR_FILE;
}

/** Whether `error` is an operating system error with this code, for example 'ENOENT'. */
export function isErrno(error: unknown, code: string): boolean {
  return error instanceof Error && 'code' in error && error.code === code;
}

/** The text of a file; undefined if it does not exist. */
export async function readTextIfAny(directory: string, name: string): Promise<string | undefined> {
  const path = join(directory, name);
  try {
    return await naming(path, () => readFile(path, 'utf8'));
  } catch (error) {
    if (isErrno(error, 'ENOENT')) return undefined;
    throw error;
  }
}

/**
 * Replaces a file atomically and syncs it and the directory: after a power cut it contains the old text or the new one.
 */
export async function writeTextSynced(directory: string, name: string, text: string): Promise<void> {
  const temporary = join(directory, name + TEMPORARY_SUFFIX);
  await naming(temporary, async () => {
    const file = await open(temporary, 'w');
    try {
      await file.writeFile(text);
      await file.sync();
    } finally {
      await file.close();
    }
  });
  await rename(temporary, join(directory, name));
  await syncDirectory(directory);
}

/** Removes a file and syncs the directory. */
export async function removeSynced(directory: string, name: string): Promise<void> {
  await rm(join(directory, name));
  await syncDirectory(directory);
}

/** Makes creations, renames and removals in a directory survive a power cut. */
export async function syncDirectory(directory: string): Promise<void> {
  await syncPath(directory);
}

/** Truncates a file to `length` bytes and syncs it. After a power cut it has the old or the new length. */
export async function cutSynced(directory: string, name: string, length: number): Promise<void> {
  const path = join(directory, name);
  await naming(path, async () => {
    const file = await open(path, 'r+');
    try {
      await file.truncate(length);
      await file.sync();
    } finally {
      await file.close();
    }
  });
}

/** Syncs the content of files that LevelDB wrote. */
export async function syncFiles(directory: string, names: readonly string[]): Promise<void> {
  for (const name of names) {
    if (name !== 'LOCK') await syncPath(join(directory, name));
  }
}

async function syncPath(path: string): Promise<void> {
  await naming(path, async () => {
    const file = await open(path, 'r');
    try {
      await file.sync();
    } finally {
      await file.close();
    }
  });
}

/** What is known to be on disk, from the file FLOOR. */
export interface Floor {
  /** The number of a batch that was synced. The database must have reached it. */
  readonly batch: number;
  /**
   * The LevelDB logs whose ends a crash tore off, newest first. LevelDB reports in its LOG that it dropped these ends;
   * that is no damage.
   */
  readonly tornLogs: readonly string[];
}

/** LOG and LOG.old report two opens, and a third may be under way. */
const TORN_LOGS_MAX = 3;

/** Adds a torn log and keeps the newest three. */
export function withTornLog(floor: Floor, log: string): Floor {
  const others = floor.tornLogs.filter((name) => name !== log);
  return { ...floor, tornLogs: [log, ...others].slice(0, TORN_LOGS_MAX) };
}

/**
 * Records the floor. It rises at every open and every clean close, not with every write. It detects a lost end of
 * LevelDB's log, which would leave an older but consistent database.
 */
export async function writeFloor(directory: string, floor: Floor): Promise<void> {
  const text = `batch ${floor.batch} torn [${floor.tornLogs.join(' ')}]`;
  await writeTextSynced(directory, FLOOR_FILE, `${text} crc ${crc32(text)}\n`);
}

/**
 * Reads the floor.
 *
 * @throws DamageFound if the file is missing or wrong
 */
export async function readFloor(directory: string): Promise<Floor> {
  const text = await readTextIfAny(directory, FLOOR_FILE);
  if (text === undefined) throw new DamageFound(`the file ${FLOOR_FILE} is missing`);
  return parseFloor(text);
}

/**
 * Parses the text of the file FLOOR.
 *
 * @throws DamageFound if the text or its checksum is wrong
 */
export function parseFloor(text: string): Floor {
  const match = /^(batch (\d+) torn \[([\d.log ]*)\]) crc (\d+)\n$/.exec(text);
  const batch = Number(match?.[2]);
  if (match === null || !Number.isSafeInteger(batch) || crc32(match[1] ?? '') !== Number(match[4])) {
    throw new DamageFound(
      `the file ${FLOOR_FILE} contains ${JSON.stringify(text.slice(0, 80))}, which is not valid`,
    );
  }
  const tornLogs = (match[3] ?? '').split(' ').filter((name) => name !== '');
  return { batch, tornLogs };
}
