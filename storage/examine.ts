/**
 * Examines a database directory without opening the database, because opening it changes LevelDB's files. Reads only.
 * It is the first part of every open, and the whole of the check from outside (`examineStore`).
 */
import { damageIn } from './damage.ts';
import { StorageDamageError, StoreNotInitialisedError } from './errors.ts';
import {
  BOOTSTRAPPING_FILE,
  DAMAGED_FILE,
  readFloor,
  readTextIfAny,
  storeFiles,
  type Floor,
} from './files.ts';
import { checkInfoLog, checkLevelDbFiles, INFO_LOG, OLD_INFO_LOG, type TornEnds } from './leveldb-files.ts';
import { isLocked } from './lock.ts';

/**
 * Checks the marker files and LevelDB's files.
 *
 * @throws StoreNotInitialisedError if bootstrap never finished here
 * @throws StorageDamageError if damage was found at an earlier start
 * @throws DamageFound if damage is found now
 */
export async function examineDirectory(
  directory: string,
): Promise<{ readonly floor: Floor; readonly torn: TornEnds }> {
  const names = (await storeFiles(directory)) ?? [];
  const marker = await readTextIfAny(directory, DAMAGED_FILE);
  if (marker !== undefined) {
    throw new StorageDamageError(
      directory,
      `${marker.trim()} (found at an earlier start, file ${DAMAGED_FILE})`,
    );
  }
  // A power cut during bootstrap can leave only the marker's temporary file; that is no database.
  const isUnborn = names.length > 0 && names.every((name) => name.startsWith(BOOTSTRAPPING_FILE));
  if (isUnborn || names.includes(BOOTSTRAPPING_FILE)) {
    throw new StoreNotInitialisedError(
      directory,
      `it was not created completely (file ${BOOTSTRAPPING_FILE}); no node has run here, so repeating it is safe`,
    );
  }
  if (names.length === 0)
    throw new StoreNotInitialisedError(directory, 'the directory contains no database files');
  const floor = await readFloor(directory);
  const torn = await checkLevelDbFiles(directory, names);
  // Another program may have opened the database, and LevelDB leaves no other trace of what it dropped then.
  await checkInfoLog(directory, INFO_LOG, floor.tornLogs);
  await checkInfoLog(directory, OLD_INFO_LOG, floor.tornLogs);
  return { floor, torn };
}

/**
 * The condition of a database as seen from outside:
 *
 * - `inUse`: a process has it open, and checked it when it opened it.
 * - `sound`: no fault is visible from outside. Each record is checked when a node opens it.
 * - `damaged`, `missing`: `problem` describes the fault and what to do.
 */
export type StoreCondition =
  | { readonly kind: 'inUse' | 'sound' }
  | { readonly kind: 'damaged' | 'missing'; readonly problem: string };

/** Examines the database of a node and changes nothing: it does not even mark a damaged directory. */
export async function examineStore(directory: string): Promise<StoreCondition> {
  if ((await storeFiles(directory)) === undefined) {
    const { message } = new StoreNotInitialisedError(directory, 'the directory does not exist');
    return { kind: 'missing', problem: message };
  }
  // The files of a running node change while they are read.
  if (await isLocked(directory)) return { kind: 'inUse' };
  try {
    await examineDirectory(directory);
    return { kind: 'sound' };
  } catch (error) {
    if (error instanceof StoreNotInitialisedError) return { kind: 'missing', problem: error.message };
    if (error instanceof StorageDamageError) return { kind: 'damaged', problem: error.message };
    const found = damageIn(error);
    if (found === undefined) throw error;
    return { kind: 'damaged', problem: new StorageDamageError(directory, found.message).message };
  }
}
