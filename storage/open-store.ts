/**
 * Opens a node's database: takes the lock, checks the owner, and verifies all contents before the node may vote. Never
 * creates or repairs anything, and never truncates data that may have been synced.
 */
import { damageIn, refusingDamage } from './damage.ts';
import { openLevelDatabase, type KeyValueDatabase } from './database.ts';
import { ForeignStoreError, StoreLockedError, StoreNotInitialisedError, StoreOpenError } from './errors.ts';
import { examineDirectory } from './examine.ts';
import { cutSynced, storeFiles, withTornLog, writeFloor, type Floor } from './files.ts';
import { differenceOf, type ExpectedIdentity, type StoreIdentity } from './identity.ts';
import { LevelGroup } from './level-group.ts';
import { LevelStore } from './level-store.ts';
import { INFO_LOG, checkInfoLog } from './leveldb-files.ts';
import { lockDirectory, type DirectoryLock } from './lock.ts';
import { readIdentity, readMask, verifyRecords } from './verify.ts';

/**
 * The size of LevelDB's log in bytes. LevelDB reads and rewrites this much at every open, and flushes each time this
 * much was written.
 */
export const WRITE_BUFFER_BYTES = 16 * 1024 * 1024;

/** Options for tests and tuning. */
export interface OpenStoreOptions {
  /** The size in bytes at which LevelDB's log is flushed into a table. Default: 16 MiB. */
  readonly writeBufferBytes?: number;
  /** Wraps LevelDB, for tests that inject failures. */
  readonly wrapDatabase?: (database: KeyValueDatabase) => KeyValueDatabase;
}

/**
 * Opens the database of a node. Returns once everything in it was read and verified and one synced write has succeeded.
 * Only then may the node take part in elections.
 *
 * @throws StoreNotInitialisedError if bootstrap never finished here
 * @throws StoreLockedError if another process has it open
 * @throws ForeignStoreError if it belongs to another node, cluster or format; the error names the field
 * @throws StorageDamageError if synced data is missing or wrong; every later start then fails the same way
 * @throws StoreOpenError if the operating system refuses
 * @throws StoreFailedError if the first write fails
 *
 * @example
 * const store = await openStore('data/node-1', { nodeId: 1, facts: factsOf(config) });
 */
export async function openStore(
  directory: string,
  expected: ExpectedIdentity,
  options: OpenStoreOptions = {},
): Promise<LevelStore> {
  const names = await storeFiles(directory);
  if (names === undefined) throw new StoreNotInitialisedError(directory, 'the directory does not exist');
  const lock = await lockDirectory(directory);
  try {
    const store = await openLocked(directory, expected, options, lock);
    return store;
  } catch (error) {
    await lock.release();
    throw error;
  }
}

async function openLocked(
  directory: string,
  expected: ExpectedIdentity,
  options: OpenStoreOptions,
  lock: DirectoryLock,
): Promise<LevelStore> {
  const floor = await refusingDamage(directory, () => checkDirectory(directory));
  const leveldb = await refusingDamage(directory, () => openDatabase(directory, options));
  const database = options.wrapDatabase?.(leveldb) ?? leveldb;
  try {
    // The marker file must be written before the database is closed, because LevelDB has already replaced the log that
    // shows the damage.
    const store = await refusingDamage(directory, () =>
      readStore(directory, expected, database, floor, lock),
    );
    await probe(store, directory, floor);
    return store;
  } catch (error) {
    await database.close();
    throw isLevelError(error) ? openError(directory, error) : error;
  }
}

/** Does the checks that must come before LevelDB opens, and changes, its files. Returns the floor. */
async function checkDirectory(directory: string): Promise<Floor> {
  // The lock is held, so no other process can change the directory.
  const { floor, torn } = await examineDirectory(directory);
  if (torn.manifest !== undefined) await cutSynced(directory, torn.manifest.name, torn.manifest.at);
  if (torn.log === undefined) return floor;
  // Record the torn log before LevelDB drops its end and reports that. If this process dies right after, the next start
  // must know that this was no damage.
  const adjusted = withTornLog(floor, torn.log);
  await writeFloor(directory, adjusted);
  return adjusted;
}

async function openDatabase(directory: string, options: OpenStoreOptions): Promise<KeyValueDatabase> {
  const writeBufferBytes = options.writeBufferBytes ?? WRITE_BUFFER_BYTES;
  try {
    return await openLevelDatabase(directory, { createIfMissing: false, writeBufferBytes });
  } catch (error) {
    throw openError(directory, error);
  }
}

/** Whether this is an error of LevelDB itself. */
function isLevelError(error: unknown): boolean {
  return error instanceof Error && 'code' in error && String(error.code).startsWith('LEVEL_');
}

/** Distinguishes damage, which is final, from temporary errors: a lock, a full disk, missing permissions. */
function openError(directory: string, error: unknown): Error {
  const cause = error instanceof Error && error.cause instanceof Error ? error.cause : error;
  const code = cause instanceof Error && 'code' in cause ? cause.code : undefined;
  if (code === 'LEVEL_LOCKED') return new StoreLockedError(directory, { cause });
  return (
    damageIn(cause) ??
    new StoreOpenError(directory, cause instanceof Error ? cause.message : String(cause), { cause })
  );
}

async function readStore(
  directory: string,
  expected: ExpectedIdentity,
  database: KeyValueDatabase,
  floor: Floor,
  lock: DirectoryLock,
): Promise<LevelStore> {
  await checkInfoLog(directory, INFO_LOG, floor.tornLogs);
  const identity = checkIdentity(directory, expected, await readIdentity(database));
  const mask = await readMask(database);
  const verified = await verifyRecords(database, floor.batch);
  const groups: LevelGroup[] = [];
  for (const group of verified.groups) groups.push(await LevelGroup.restore({ database, mask }, group));
  return new LevelStore({
    database,
    identity,
    mask,
    batch: verified.batch,
    digest: verified.digest,
    groups,
    read: (action) => refusingDamage(directory, action),
    onClose: async (batch) => {
      try {
        await database.close();
        if (batch !== undefined) await writeFloor(directory, { ...floor, batch });
      } finally {
        await lock.release();
      }
    },
  });
}

function checkIdentity(
  directory: string,
  expected: ExpectedIdentity,
  found: StoreIdentity | { readonly formatVersion: number },
): StoreIdentity {
  if ('formatVersion' in found) {
    const { formatVersion } = expected.facts;
    throw new ForeignStoreError(directory, {
      field: 'formatVersion',
      expected: String(formatVersion),
      found: String(found.formatVersion),
    });
  }
  const difference = differenceOf(expected, found);
  if (difference !== undefined) throw new ForeignStoreError(directory, difference);
  return found;
}

/** One synced write proves that the disk works before anyone relies on this node. Then the floor may rise. */
async function probe(store: LevelStore, directory: string, floor: Floor): Promise<void> {
  await new Promise<void>((resolve, reject) => {
    store.write([], (error) => (error === undefined ? resolve() : reject(error)));
  });
  await writeFloor(directory, { ...floor, batch: store.lastBatch });
}
