/**
 * Tells damage from errors that may pass, and makes a directory that was found damaged refused for ever.
 * Never repairs or deletes anything.
 */
import { DamageFound, StorageDamageError } from './errors.ts';
import { DAMAGED_FILE, writeTextSynced } from './files.ts';

/** The damage that an error stands for, or undefined if it may be a passing failure of the operating system. */
export function damageIn(error: unknown): DamageFound | undefined {
  if (error instanceof DamageFound) return error;
  if (!(error instanceof Error) || !('code' in error)) return undefined;
  const isDamage =
    error.code === 'LEVEL_CORRUPTION' ||
    // LevelDB maps its tables into memory and says this when a table's index points outside of it. A sector that
    // cannot be read ends the process instead, with SIGBUS.
    (error.code === 'LEVEL_IO_ERROR' && /\.(ldb|sst): Invalid argument/.test(error.message));
  return isDamage ? new DamageFound(`LevelDB reports: ${error.message}`, { cause: error }) : undefined;
}

/** Runs a check or a read. Damage it finds is recorded in the directory before anything else can happen. */
export async function refusingDamage<T>(directory: string, action: () => Promise<T>): Promise<T> {
  try {
    return await action();
  } catch (error) {
    const found = damageIn(error);
    throw found === undefined ? error : await markDamaged(directory, found);
  }
}

async function markDamaged(directory: string, found: DamageFound): Promise<StorageDamageError> {
  try {
    await writeTextSynced(directory, DAMAGED_FILE, `${found.message}\n`);
  } catch (cause) {
    const damage = `${found.message} (and this could not be recorded in the file ${DAMAGED_FILE})`;
    return new StorageDamageError(directory, damage, { cause });
  }
  return new StorageDamageError(directory, found.message, { cause: found });
}
