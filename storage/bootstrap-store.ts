/**
 * Creates the database of a new node; no other code does. It never touches a directory in which a node has run, because
 * a node that forgets its votes can break the guarantees of the cluster.
 */
import { randomBytes } from 'node:crypto';
import { mkdir, rm } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import { assert } from '../raft/assert.ts';
import { put } from './level-group.ts';
import { openLevelDatabase, type Operation } from './database.ts';
import { EMPTY_DIGEST } from './digest.ts';
import { StoreExistsError } from './errors.ts';
import {
  BOOTSTRAPPING_FILE,
  removeSynced,
  storeFiles,
  syncDirectory,
  syncFiles,
  writeFloor,
  writeTextSynced,
} from './files.ts';
import { lockDirectory } from './lock.ts';
import { WRITE_BUFFER_BYTES } from './open-store.ts';
import { encodeIdentity, INCARNATION, type StoreIdentity } from './identity.ts';
import { MASK_BYTES } from './mask.ts';
import { encodeMask, encodeStoreRecord } from './records.ts';

/**
 * Creates the directory if necessary, and in it an empty database that belongs to `identity`. Everything is synced when
 * this returns. If the process dies half way, call it again: the file BOOTSTRAPPING, created first and removed last,
 * shows that no node can have run here.
 *
 * @throws StoreExistsError if the directory contains a database
 * @throws StoreLockedError if it is in use
 *
 * @example
 * await bootstrapStore('data/node-1', { nodeId: 1, incarnation: drawIncarnation(), facts: factsOf(config) });
 */
export async function bootstrapStore(directory: string, identity: StoreIdentity): Promise<void> {
  assert(
    Number.isSafeInteger(identity.nodeId) && identity.nodeId >= 1,
    'node id {} must be an integer >= 1',
    identity.nodeId,
  );
  assert(identity.facts.clusterId !== '', 'the cluster id must not be empty');
  assert(
    INCARNATION.test(identity.incarnation),
    'incarnation {} must be 128 bits in hex',
    identity.incarnation,
  );
  await createDirectory(directory);
  const lock = await lockDirectory(directory);
  try {
    await claimDirectory(directory);
    await createDatabase(directory, identity);
    await removeSynced(directory, BOOTSTRAPPING_FILE);
  } finally {
    await lock.release();
  }
}

/** Creates the directory with its parents, and syncs the parent of each new one. */
async function createDirectory(directory: string): Promise<void> {
  const path = resolve(directory);
  const topmostCreated = await mkdir(path, { recursive: true });
  if (topmostCreated === undefined) return;
  const stop = dirname(topmostCreated);
  for (let parent = dirname(path); ; parent = dirname(parent)) {
    await syncDirectory(parent);
    if (parent === stop || parent === dirname(parent)) return;
  }
}

/** Writes the marker file into an empty directory, or empties one whose bootstrap did not finish. */
async function claimDirectory(directory: string): Promise<void> {
  const names = (await storeFiles(directory)) ?? [];
  if (!names.includes(BOOTSTRAPPING_FILE)) {
    const [found] = names.filter((name) => !name.startsWith(BOOTSTRAPPING_FILE));
    if (found !== undefined) throw new StoreExistsError(directory, found);
    await writeTextSynced(
      directory,
      BOOTSTRAPPING_FILE,
      'no node has run here yet; bootstrap may be repeated\n',
    );
    return;
  }
  for (const name of names) {
    if (name !== BOOTSTRAPPING_FILE) await rm(join(directory, name));
  }
  await syncDirectory(directory);
}

async function createDatabase(directory: string, identity: StoreIdentity): Promise<void> {
  const batch = 1;
  const database = await openLevelDatabase(directory, {
    createIfMissing: true,
    writeBufferBytes: WRITE_BUFFER_BYTES,
  });
  try {
    const operations: Operation[] = [];
    put(operations, encodeIdentity(identity));
    put(operations, encodeMask(randomBytes(MASK_BYTES)));
    put(operations, encodeStoreRecord({ batch, digest: EMPTY_DIGEST, groupCount: 0 }));
    await new Promise<void>((resolve, reject) => {
      database.syncedBatch(operations, (error) => (error === undefined ? resolve() : reject(error)));
    });
  } finally {
    await database.close();
  }
  // LevelDB 1.20 closes its first MANIFEST unsynced and never syncs the rename of CURRENT (google/leveldb#189).
  await syncFiles(directory, (await storeFiles(directory)) ?? []);
  await syncDirectory(directory);
  await writeFloor(directory, { batch, tornLogs: [] });
}
