/**
 * The small files we keep beside LevelDB's, written so that a power cut leaves the old or the new content.
 * Must never open, read or copy the file LOCK: closing any descriptor of it drops LevelDB's lock on it.
 */
import { open, readFile, readdir, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { crc32 } from 'node:zlib';
import { DamageFound } from './errors.ts';
import { naming } from './file-errors.ts';

/** Exists while a bootstrap has not finished: the database was never opened for use, so nothing depends on it. */
export const BOOTSTRAPPING_FILE = 'BOOTSTRAPPING';
/** Exists once damage was found, and holds what it was. The directory is refused for ever. */
export const DAMAGED_FILE = 'DAMAGED';
/** Holds a batch number that the store is known to have reached: a lower bound, see readFloor. */
const FLOOR_FILE = 'FLOOR';
const TEMPORARY_SUFFIX = '.new';

const LEVELDB_FILE = /^(CURRENT|LOCK|LOG|LOG\.old|MANIFEST-\d+|\d+\.(log|ldb|sst|dbtmp))$/;

/** The files of a database in a directory: LevelDB's and ours. Undefined if there is no such directory. */
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

/** Is there a database that may have been used? One whose bootstrap did not finish was not, and may be made anew. */
export async function hasStore(directory: string): Promise<boolean> {
  const names = (await storeFiles(directory)) ?? [];
  return names.some((name) => !name.startsWith(BOOTSTRAPPING_FILE)) && !names.includes(BOOTSTRAPPING_FILE);
}

function isOurs(name: string): boolean {
  const plain = name.endsWith(TEMPORARY_SUFFIX) ? name.slice(0, -TEMPORARY_SUFFIX.length) : name;
  return plain === BOOTSTRAPPING_FILE || plain === DAMAGED_FILE || plain === FLOOR_FILE;
}

export function isErrno(error: unknown, code: string): boolean {
  return error instanceof Error && 'code' in error && error.code === code;
}

/** The text of a file, or undefined if there is none. */
export async function readTextIfAny(directory: string, name: string): Promise<string | undefined> {
  const path = join(directory, name);
  try {
    return await naming(path, () => readFile(path, 'utf8'));
  } catch (error) {
    if (isErrno(error, 'ENOENT')) return undefined;
    throw error;
  }
}

/** Replaces a file so that after a power cut it holds the old text or the new one, and syncs the directory. */
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

export async function removeSynced(directory: string, name: string): Promise<void> {
  await rm(join(directory, name));
  await syncDirectory(directory);
}

/** Makes creations, renames and removals in a directory survive a power cut. */
export async function syncDirectory(directory: string): Promise<void> {
  await syncPath(directory);
}

/** Cuts a file off at `length`. A power cut leaves it as it was, or cut. */
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

/** Syncs the content of files that somebody else wrote. */
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

/** What is known to be on disk, from a file of our own: see writeFloor. */
export interface Floor {
  /** A batch that was synced: the database must have reached it. */
  readonly batch: number;
  /** LevelDB's last logs whose ends a crash tore off: their drops in LevelDB's LOG are no damage. Newest first. */
  readonly tornLogs: readonly string[];
}

/** LOG and LOG.old tell of two opens, and a third may be under way. */
const TORN_LOGS_MAX = 3;

export function withTornLog(floor: Floor, log: string): Floor {
  const others = floor.tornLogs.filter((name) => name !== log);
  return { ...floor, tornLogs: [log, ...others].slice(0, TORN_LOGS_MAX) };
}

/**
 * Records what is synced. The floor is raised at every open and at every clean close, not with every write: it exists
 * to notice a lost end of the log, which leaves a database that is older but consistent.
 */
export async function writeFloor(directory: string, floor: Floor): Promise<void> {
  const text = `batch ${floor.batch} torn [${floor.tornLogs.join(' ')}]`;
  await writeTextSynced(directory, FLOOR_FILE, `${text} crc ${crc32(text)}\n`);
}

/** Throws DamageFound if the file is missing or wrong. */
export async function readFloor(directory: string): Promise<Floor> {
  const text = await readTextIfAny(directory, FLOOR_FILE);
  if (text === undefined) throw new DamageFound(`the file ${FLOOR_FILE} is missing`);
  return parseFloor(text);
}

/** @throws DamageFound if this is no floor that was written */
export function parseFloor(text: string): Floor {
  const match = /^(batch (\d+) torn \[([\d.log ]*)\]) crc (\d+)\n$/.exec(text);
  const batch = Number(match?.[2]);
  if (match === null || !Number.isSafeInteger(batch) || crc32(match[1] ?? '') !== Number(match[4])) {
    throw new DamageFound(
      `the file ${FLOOR_FILE} holds ${JSON.stringify(text.slice(0, 80))}, which we did not write`,
    );
  }
  const tornLogs = (match[3] ?? '').split(' ').filter((name) => name !== '');
  return { batch, tornLogs };
}
