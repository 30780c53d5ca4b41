/**
 * Encodes the small records: the state of each group, and the store record that seals all of them. group-check.ts and
 * verify.ts check the fields.
 */
import type { GroupId, HardState, LogPosition, NodeId, SnapshotMeta } from '../raft/types.ts';
import { CHECKSUM_BYTES, checkRecord, sealRecord, type StoredRecord } from './codec.ts';
import { DamageFound } from './errors.ts';
import { GROUP_KEY_BYTES, MASK_KEY, STORE_KEY, groupOfKey, writeGroupKey } from './keys.ts';
import { Mask, MASK_BYTES } from './mask.ts';

/** The layout of the database that this version writes and reads. */
export const FORMAT_VERSION = 5;

/** Encodes the mask record, which is written once, at bootstrap. */
export function encodeMask(pad: Uint8Array): StoredRecord {
  return sealRecord(Buffer.concat([MASK_KEY, pad, Buffer.alloc(CHECKSUM_BYTES)]), MASK_KEY.length);
}

/**
 * Decodes the mask record.
 *
 * @throws DamageFound
 */
export function decodeMask(key: Buffer, value: Buffer): Mask {
  checkRecord(key, value, MASK_BYTES, 'the mask record');
  return new Mask(value.subarray(0, MASK_BYTES));
}

/** A digest of two 32-bit words, see digest.ts. */
export interface Digest {
  readonly high: number;
  readonly low: number;
}

/**
 * The seal over all group records, written in every batch. It detects a group record that a hole in LevelDB's log has
 * rolled back.
 */
export interface StoreRecord {
  /** The number of the batch that wrote this: 1 at bootstrap, one more with every write. */
  readonly batch: number;
  readonly groupCount: number;
  /** The digest over all group records after that batch. */
  readonly digest: Digest;
}

// Store value: batch f64, group count u32, digest high u32, digest low u32, checksum u32.
const STORE_BYTES = 8 + 4 + 4 + 4;

/** Encodes the store record. */
export function encodeStoreRecord(record: StoreRecord): StoredRecord {
  const keyBytes = STORE_KEY.length;
  const buffer = Buffer.allocUnsafe(keyBytes + STORE_BYTES + CHECKSUM_BYTES);
  buffer.set(STORE_KEY, 0);
  let at = buffer.writeDoubleLE(record.batch, keyBytes);
  at = buffer.writeUInt32LE(record.groupCount, at);
  at = buffer.writeUInt32LE(record.digest.high, at);
  buffer.writeUInt32LE(record.digest.low, at);
  return sealRecord(buffer, keyBytes);
}

/**
 * Decodes the store record.
 *
 * @throws DamageFound
 */
export function decodeStoreRecord(key: Buffer, value: Buffer): StoreRecord {
  checkRecord(key, value, STORE_BYTES, 'the store record');
  return {
    batch: value.readDoubleLE(0),
    groupCount: value.readUInt32LE(8),
    digest: { high: value.readUInt32LE(12), low: value.readUInt32LE(16) },
  };
}

/** The state of one group, in one value, so that no part of it can be newer than another. */
export interface GroupRecord {
  /** The batch that wrote this record. */
  readonly batch: number;
  readonly hardState: HardState;
  /** See GroupState. */
  readonly placement: number;
  readonly removedAt: number;
  readonly lastIndex: number;
  /** The chain value of the last entry, or of the base if the log is empty. */
  readonly lastChain: number;
  readonly base: LogPosition;
  readonly baseChain: number;
  /** No entry key below this index exists in the database. */
  readonly oldestKey: number;
  /** No entry key above this index exists in the database. Keys above `lastIndex` are garbage. */
  readonly newestKey: number;
  readonly snapshot?: SnapshotMeta;
}

// Group value: twelve f64, two chain u32, voter count u16 (NO_SNAPSHOT if there is none). With a snapshot: five f64,
// and the voters as f64. Only if the snapshot has outgoing voters, learners, a checksum or an epoch above 0: the two
// counts, that checksum (-1 if there is none), the epoch and the ids, all as f64. Then checksum u32. All little-endian.
const GROUP_FIXED_BYTES = 12 * 8 + 2 * 4 + 2;
const NO_SNAPSHOT = 0xffff;

/** Encodes a group record. */
export function encodeGroupRecord(group: GroupId, record: GroupRecord): StoredRecord {
  const { hardState, base, snapshot } = record;
  const others = snapshot === undefined ? [] : encodeOthers(snapshot);
  const snapshotBytes = snapshot === undefined ? 0 : (5 + snapshot.voters.length + others.length) * 8;
  const buffer = Buffer.allocUnsafe(GROUP_KEY_BYTES + GROUP_FIXED_BYTES + snapshotBytes + CHECKSUM_BYTES);
  writeGroupKey(buffer, group);
  let at = GROUP_KEY_BYTES;
  at = buffer.writeDoubleLE(record.batch, at);
  at = buffer.writeDoubleLE(hardState.term, at);
  at = buffer.writeDoubleLE(hardState.vote, at);
  at = buffer.writeDoubleLE(hardState.commit, at);
  at = buffer.writeDoubleLE(record.lastIndex, at);
  at = buffer.writeDoubleLE(base.index, at);
  at = buffer.writeDoubleLE(base.term, at);
  at = buffer.writeDoubleLE(base.timeMillis, at);
  at = buffer.writeDoubleLE(record.oldestKey, at);
  at = buffer.writeDoubleLE(record.newestKey, at);
  at = buffer.writeDoubleLE(record.placement, at);
  at = buffer.writeDoubleLE(record.removedAt, at);
  at = buffer.writeUInt32LE(record.lastChain, at);
  at = buffer.writeUInt32LE(record.baseChain, at);
  at = buffer.writeUInt16LE(snapshot === undefined ? NO_SNAPSHOT : snapshot.voters.length, at);
  if (snapshot !== undefined) {
    at = buffer.writeDoubleLE(snapshot.index, at);
    at = buffer.writeDoubleLE(snapshot.term, at);
    at = buffer.writeDoubleLE(snapshot.timeMillis, at);
    at = buffer.writeDoubleLE(snapshot.chunkCount, at);
    at = buffer.writeDoubleLE(snapshot.byteLength, at);
    for (const voter of snapshot.voters) at = buffer.writeDoubleLE(voter, at);
    for (const value of others) at = buffer.writeDoubleLE(value, at);
  }
  return sealRecord(buffer, GROUP_KEY_BYTES);
}

function encodeOthers({ epoch = 0, outgoing = [], learners = [], checksum = -1 }: SnapshotMeta): number[] {
  const isEmpty = outgoing.length === 0 && learners.length === 0 && checksum === -1 && epoch === 0;
  return isEmpty ? [] : [outgoing.length, learners.length, checksum, epoch, ...outgoing, ...learners];
}

/** A group record from disk, with its checksum for the digest. */
export interface StoredGroupRecord {
  readonly group: GroupId;
  readonly record: GroupRecord;
  readonly checksum: number;
}

/**
 * Decodes a group record.
 *
 * @throws DamageFound
 */
export function decodeGroupRecord(key: Buffer, value: Buffer): StoredGroupRecord {
  const group = groupOfKey(key);
  const what = `the record of group ${group}`;
  const checksum = checkRecord(key, value, GROUP_FIXED_BYTES, what);
  const record = {
    batch: value.readDoubleLE(0),
    hardState: { term: value.readDoubleLE(8), vote: value.readDoubleLE(16), commit: value.readDoubleLE(24) },
    lastIndex: value.readDoubleLE(32),
    base: { index: value.readDoubleLE(40), term: value.readDoubleLE(48), timeMillis: value.readDoubleLE(56) },
    oldestKey: value.readDoubleLE(64),
    newestKey: value.readDoubleLE(72),
    placement: value.readDoubleLE(80),
    removedAt: value.readDoubleLE(88),
    lastChain: value.readUInt32LE(96),
    baseChain: value.readUInt32LE(100),
  };
  const voterCount = value.readUInt16LE(104);
  if (voterCount === NO_SNAPSHOT) return { group, record, checksum };
  const snapshot = decodeSnapshotMeta(value, voterCount, what);
  return { group, record: { ...record, snapshot }, checksum };
}

function decodeSnapshotMeta(value: Buffer, voterCount: number, what: string): SnapshotMeta {
  const at = GROUP_FIXED_BYTES;
  const votersAt = at + 5 * 8;
  const end = value.length - CHECKSUM_BYTES;
  const othersAt = votersAt + voterCount * 8;
  const others: number[] = [];
  for (let i = othersAt; i + 8 <= end; i += 8) others.push(value.readDoubleLE(i));
  const [outgoingCount = 0, learnerCount = 0, checksum = -1, epoch = 0, ...ids] = others;
  const otherCount = others.length === 0 ? 0 : 4 + outgoingCount + learnerCount;
  const areCounts = [outgoingCount, learnerCount].every((count) => Number.isSafeInteger(count) && count >= 0);
  if (!areCounts || end !== othersAt + otherCount * 8) {
    const members = `${voterCount} voters, ${outgoingCount} outgoing voters and ${learnerCount} learners`;
    throw new DamageFound(`${what} is ${value.length} bytes long, which does not match ${members}`);
  }
  const voters: NodeId[] = [];
  for (let i = 0; i < voterCount; i += 1) voters.push(value.readDoubleLE(votersAt + i * 8));
  return {
    index: value.readDoubleLE(at),
    term: value.readDoubleLE(at + 8),
    timeMillis: value.readDoubleLE(at + 16),
    chunkCount: value.readDoubleLE(at + 24),
    byteLength: value.readDoubleLE(at + 32),
    voters,
    ...(epoch > 0 && { epoch }),
    ...(outgoingCount > 0 && { outgoing: ids.slice(0, outgoingCount) }),
    ...(learnerCount > 0 && { learners: ids.slice(outgoingCount) }),
    ...(checksum >= 0 && { checksum }),
  };
}
