/**
 * What can be told of a directory without opening its database, which would change LevelDB's files. Reads only: the first part of every
 * open, and all of a look from outside.
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
 * @throws StoreNotInitialisedError if bootstrap never finished here
 * @throws StorageDamageError if damage was found at an earlier start
 * @throws DamageFound if it is found now
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
  // A power cut can leave no more than the marker's temporary file; that is not the remains of a database.
  const isUnborn = names.length > 0 && names.every((name) => name.startsWith(BOOTSTRAPPING_FILE));
  if (isUnborn || names.includes(BOOTSTRAPPING_FILE)) {
    throw new StoreNotInitialisedError(
      directory,
      `its bootstrap did not finish (file ${BOOTSTRAPPING_FILE}); no node has run here, so repeating it is safe`,
    );
  }
  if (names.length === 0)
    throw new StoreNotInitialisedError(directory, 'the directory holds no database files');
  const floor = await readFloor(directory);
  const torn = await checkLevelDbFiles(directory, names);
  // Somebody else may have opened it since, and LevelDB leaves no other trace of what it dropped then.
  await checkInfoLog(directory, INFO_LOG, floor.tornLogs);
  await checkInfoLog(directory, OLD_INFO_LOG, floor.tornLogs);
  return { floor, torn };
}

/**
 * - `inUse`: a process has it open, and has checked it.
 * - `sound`: nothing is wrong with it from outside; each record is checked when a node opens it.
 * - `damaged`, `missing`: `problem` says what is so and what to do.
 */
export type StoreCondition =
  | { readonly kind: 'inUse' | 'sound' }
  | { readonly kind: 'damaged' | 'missing'; readonly problem: string };

/** Looks at the database of a node, and changes nothing: not even a directory that is found damaged is marked so. */
export async function examineStore(directory: string): Promise<StoreCondition> {
  if ((await storeFiles(directory)) === undefined) {
    const { message } = new StoreNotInitialisedError(directory, 'the directory does not exist');
    return { kind: 'missing', problem: message };
  }
  // Its files change under a look.
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
