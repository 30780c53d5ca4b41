/**
 * Distinguishes damage from temporary errors, and marks a damaged directory so that it is refused forever. Never repairs or
 * deletes anything.
 */
import { DamageFound, StorageDamageError } from './errors.ts';
import { DAMAGED_FILE, writeTextSynced } from './files.ts';

/** The damage that an error reports; undefined if it may be a temporary failure of the operating system. */
export function damageIn(error: unknown): DamageFound | undefined {
  if (error instanceof DamageFound) return error;
  if (!(error instanceof Error) || !('code' in error)) return undefined;
  const isDamage =
    error.code === 'LEVEL_CORRUPTION' ||
    // LevelDB maps its tables into memory and reports this when the index of a table points outside of it. A sector
    // that cannot be read ends the process instead, with SIGBUS.
    (error.code === 'LEVEL_IO_ERROR' && /\.(ldb|sst): Invalid argument/.test(error.message));
  return isDamage ? new DamageFound(`LevelDB reports: ${error.message}`, { cause: error }) : undefined;
}

/**
 * Runs a check or a read. Records damage in the directory before anything else can happen.
 *
 * @throws StorageDamageError if `action` found damage
 */
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
