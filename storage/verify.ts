/**
 * Reads the whole database and checks that it is one complete, consistent history. LevelDB does not verify its tables,
 * nor its log once it has skipped a bad block. Reads only; throws DamageFound.
 */
import type { Entry, GroupId, SnapshotMeta } from '../raft/types.ts';
import { decodeChunk, decodeEntry } from './codec.ts';
import type { KeyValueDatabase } from './database.ts';
import { EMPTY_DIGEST, combine, recordHash } from './digest.ts';
import { DamageFound } from './errors.ts';
import { decodeIdentity, type StoreIdentity } from './identity.ts';
import type { Mask } from './mask.ts';
import {
  ALL_GROUPS,
  IDENTITY_KEY,
  MASK_KEY,
  STORE_KEY,
  chunkOfKey,
  chunkRange,
  entryRange,
  indexOfKey,
} from './keys.ts';
import {
  decodeGroupRecord,
  decodeMask,
  decodeStoreRecord,
  type Digest,
  FORMAT_VERSION,
  type GroupRecord,
  type StoreRecord,
} from './records.ts';

/** A database and the mask of its data. */
export interface MaskedDatabase {
  readonly database: KeyValueDatabase;
  readonly mask: Mask;
}

/** A group as found on disk. */
export interface VerifiedGroup {
  readonly group: GroupId;
  readonly record: GroupRecord;
  readonly hash: Digest;
}

/** The verified records of a database. */
export interface VerifiedStore {
  readonly batch: number;
  readonly digest: Digest;
  readonly groups: readonly VerifiedGroup[];
}

/** The owner of this database, or only its layout if that is another one. */
export async function readIdentity(
  database: KeyValueDatabase,
): Promise<StoreIdentity | { readonly formatVersion: number }> {
  const value = await database.get(IDENTITY_KEY);
  if (value === undefined) throw new DamageFound('the identity record is missing');
  return decodeIdentity(IDENTITY_KEY, value, FORMAT_VERSION);
}

/** Reads the mask record. */
export async function readMask(database: KeyValueDatabase): Promise<Mask> {
  const value = await database.get(MASK_KEY);
  if (value === undefined) throw new DamageFound('the mask record is missing');
  return decodeMask(MASK_KEY, value);
}

/**
 * Checks the store record and every group record against each other. `readLog` and `readChunks` check logs and
 * snapshots.
 *
 * @param floor the number of a batch that is known to have been synced
 */
export async function verifyRecords(database: KeyValueDatabase, floor: number): Promise<VerifiedStore> {
  const value = await database.get(STORE_KEY);
  if (value === undefined) throw new DamageFound('the store record is missing');
  const store = decodeStoreRecord(STORE_KEY, value);
  if (store.batch < floor) {
    throw new DamageFound(
      `the last batch found is ${store.batch}, but batch ${floor} was written: the end of LevelDB's log is missing, ` +
        `or the directory is an older copy`,
    );
  }
  const groups: VerifiedGroup[] = [];
  await database.scan(ALL_GROUPS, (key, bytes) => {
    const { group, record, checksum } = decodeGroupRecord(key, bytes);
    checkRecordFields(group, record, store);
    groups.push({ group, record, hash: recordHash(group, record.batch, checksum) });
  });
  checkDigest(store, groups);
  return { batch: store.batch, digest: store.digest, groups };
}

function checkDigest(store: StoreRecord, groups: readonly VerifiedGroup[]): void {
  let digest = EMPTY_DIGEST;
  for (const { hash } of groups) digest = combine(digest, hash);
  const { high, low } = store.digest;
  if (groups.length === store.groupCount && digest.high === high && digest.low === low) return;
  throw new DamageFound(
    `the records of the ${groups.length} groups found are not those that batch ${store.batch} sealed ` +
      `(${store.groupCount} groups): one of them was lost or is older, and a vote may be forgotten`,
  );
}

function checkRecordFields(group: GroupId, record: GroupRecord, store: StoreRecord): void {
  const { hardState, base, lastIndex, snapshot } = record;
  const isTombstone = record.removedAt > 0 && record.removedAt === record.placement;
  const sound =
    record.batch <= store.batch &&
    base.index <= lastIndex &&
    hardState.commit <= lastIndex &&
    record.removedAt <= record.placement &&
    (isTombstone || record.oldestKey <= base.index + 1) &&
    (!isTombstone || (lastIndex === 0 && snapshot === undefined)) &&
    (lastIndex === base.index || record.newestKey >= lastIndex) &&
    (snapshot === undefined ? base.index === 0 : snapshot.index >= base.index && snapshot.index <= lastIndex);
  if (!sound) {
    throw new DamageFound(
      `the record of group ${group} contradicts itself or batch ${store.batch}: ${JSON.stringify(record)}`,
    );
  }
}

/**
 * Reads the log of a group and checks that it is complete: every index exists, each entry is chained to the previous
 * one, terms and times never decrease, and the last entry is the one that the group's record names.
 */
export async function readLog(
  { database, mask }: MaskedDatabase,
  group: GroupId,
  record: GroupRecord,
  visit: (entry: Entry, chain: number) => void,
): Promise<void> {
  const { base, lastIndex, snapshot } = record;
  let previous: { index: number; term: number; timeMillis: number } = base;
  let previousChain = record.baseChain;
  if (lastIndex > base.index) {
    await database.scan(entryRange(group, base.index + 1, lastIndex), (key, value) => {
      const index = indexOfKey(key);
      if (index !== previous.index + 1) throw missingEntries(group, previous.index + 1, index - 1);
      const stored = decodeEntry({ group, mask }, key, value);
      const { entry } = stored;
      if (stored.previousChain !== previousChain) {
        throw new DamageFound(`entry ${index} of group ${group} does not belong after the entry before it`);
      }
      if (entry.term < previous.term || entry.timeMillis < previous.timeMillis) {
        throw new DamageFound(
          `entry ${index} of group ${group} has a lower term or time than the previous entry`,
        );
      }
      if (index === snapshot?.index) checkSnapshotPosition(group, snapshot, entry);
      visit(entry, stored.chain);
      previous = entry;
      previousChain = stored.chain;
    });
  }
  if (previous.index !== lastIndex) throw missingEntries(group, previous.index + 1, lastIndex);
  if (previousChain !== record.lastChain) {
    throw new DamageFound(`the last entry ${lastIndex} of group ${group} is not the one its record names`);
  }
  if (record.hardState.term < previous.term) {
    throw new DamageFound(
      `group ${group} has term ${record.hardState.term}, below its last entry's ${previous.term}`,
    );
  }
}

function missingEntries(group: GroupId, from: number, to: number): DamageFound {
  return new DamageFound(`entries ${from} to ${to} of group ${group} are missing`);
}

function checkSnapshotPosition(group: GroupId, meta: SnapshotMeta, entry: Entry): void {
  if (entry.term === meta.term && entry.timeMillis === meta.timeMillis) return;
  throw new DamageFound(
    `snapshot ${meta.index} of group ${group} is not of the entry that the log holds there`,
  );
}

/** Reads all chunks of a group. Checks that those of its snapshot are complete, and passes all others to `leftover`. */
export async function readChunks(
  { database, mask }: MaskedDatabase,
  group: GroupId,
  meta: SnapshotMeta | undefined,
  leftover: (index: number, chunk: number) => void,
): Promise<void> {
  let chunkCount = 0;
  let byteLength = 0;
  await database.scan(chunkRange(group), (key, value) => {
    const index = indexOfKey(key);
    const chunk = chunkOfKey(key);
    if (index !== meta?.index || chunk >= meta.chunkCount) {
      leftover(index, chunk);
      return;
    }
    if (chunk !== chunkCount) {
      throw new DamageFound(`chunk ${chunkCount} of snapshot ${index} of group ${group} is missing`);
    }
    const data = decodeChunk({ group, mask }, key, value);
    chunkCount += 1;
    byteLength += data.length;
  });
  if (meta !== undefined && (chunkCount !== meta.chunkCount || byteLength !== meta.byteLength)) {
    throw new DamageFound(
      `snapshot ${meta.index} of group ${group} has ${chunkCount} chunks of ${byteLength} bytes where ` +
        `${meta.chunkCount} of ${meta.byteLength} were stored`,
    );
  }
}
