/**
 * A simulated disk as the bytes that the product stores, so that a flipped bit meets the product's own verification.
 * Made only when bits flip: otherwise a simulated disk holds decoded entries.
 */
import type { GroupId } from '../../raft/types.ts';
import { encodeChunk, encodeEntry, type StoredRecord } from '../../storage/codec.ts';
import type { KeyValueDatabase } from '../../storage/database.ts';
import { combine, EMPTY_DIGEST, recordHash } from '../../storage/digest.ts';
import { DamageFound } from '../../storage/errors.ts';
import type { KeyRange } from '../../storage/keys.ts';
import { LevelGroup } from '../../storage/level-group.ts';
import { Mask, MASK_BYTES } from '../../storage/mask.ts';
import type { MemoryDisk } from '../../storage/memory-store.ts';
import { encodeGroupRecord, encodeStoreRecord } from '../../storage/records.ts';
import { verifyRecords } from '../../storage/verify.ts';
import type { Random } from './random.ts';

const BATCH = 1;
const MASK = new Mask(new Uint8Array(MASK_BYTES));

/** All records of a disk, by key. */
function recordsOf(disk: MemoryDisk): StoredRecord[] {
  const records: StoredRecord[] = [];
  let digest = EMPTY_DIGEST;
  for (const [group, { hardState, placement, removedAt, base, entries, snapshot }] of disk) {
    let lastChain = 0;
    for (const entry of entries) {
      const stored = encodeEntry({ group, mask: MASK }, entry, lastChain);
      lastChain = stored.checksum;
      records.push(stored);
    }
    for (const [i, data] of (snapshot?.chunks ?? []).entries()) {
      records.push(encodeChunk({ group, mask: MASK }, { index: snapshot?.meta.index ?? 0, chunk: i }, data));
    }
    const lastIndex = base.index + entries.length;
    const stored = encodeGroupRecord(group, {
      batch: BATCH,
      hardState,
      placement,
      removedAt,
      lastIndex,
      lastChain,
      base,
      baseChain: 0,
      oldestKey: base.index + 1,
      newestKey: lastIndex,
      ...(snapshot !== undefined && { snapshot: snapshot.meta }),
    });
    records.push(stored);
    digest = combine(digest, recordHash(group, BATCH, stored.checksum));
  }
  records.push(encodeStoreRecord({ batch: BATCH, groupCount: disk.size, digest }));
  return records.sort((a, b) => a.key.compare(b.key));
}

function unused(): Promise<never> {
  return Promise.reject(new Error('an image is only read'));
}

/** Reads only. */
function databaseOf(records: readonly StoredRecord[]): KeyValueDatabase {
  return {
    syncedBatch: unused,
    close: unused,
    async get(key) {
      return records.find((record) => record.key.equals(key))?.value;
    },
    async scan(range: KeyRange, visit) {
      for (const { key, value } of records) {
        if (key.compare(range.first) >= 0 && key.compare(range.last) <= 0) visit(key, value);
      }
    },
  };
}

/** Flips a bit somewhere, and returns the damage that a start of the product finds; undefined if it finds none. */
export async function damageOfFlip(disk: MemoryDisk, random: Random): Promise<string | undefined> {
  const records = recordsOf(disk);
  const { value } = random.pick(records);
  const at = random.below(value.length);
  value[at] = (value[at] ?? 0) ^ (1 << random.below(8));
  return damageIn(records);
}

async function damageIn(records: readonly StoredRecord[]): Promise<string | undefined> {
  const database = databaseOf(records);
  try {
    const { groups } = await verifyRecords(database, 0);
    for (const group of groups) await LevelGroup.restore({ database, mask: MASK }, group);
    return undefined;
  } catch (error) {
    if (error instanceof DamageFound) return error.message;
    throw error;
  }
}

/** Which snapshot a chunk that cannot be read belongs to. */
export interface SpoiledSnapshot {
  readonly group: GroupId;
  readonly index: number;
}
