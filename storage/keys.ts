/**
 * The keys of the database. They sort by kind, group and index, so that the log of a group is one contiguous range.
 * Big-endian.
 */
import { assert } from '../raft/assert.ts';
import type { GroupId } from '../raft/types.ts';

/** Group ids have 32 bits and log indexes 48: at a million entries a second those last nine years. */
const GROUP_MAX = 0xffff_ffff;
const INDEX_MAX = 2 ** 48 - 1;
/** The highest number of a snapshot chunk. */
export const CHUNK_MAX = 0xffff_ffff;

const IDENTITY = 0x00;
const STORE = 0x01;
const MASK = 0x02;
const GROUP = 0x10;
const CHUNK = 0x20;
const ENTRY = 0x30;

/** Length of a group key: kind u8, group u32. */
export const GROUP_KEY_BYTES = 5;
/** Length of a chunk key: kind u8, group u32, index of the snapshot u48, chunk u32. */
export const CHUNK_KEY_BYTES = 15;
/** Length of an entry key: kind u8, group u32, index u48. */
export const ENTRY_KEY_BYTES = 11;

/** The key of the identity record (identity.ts). */
export const IDENTITY_KEY: Buffer = Buffer.of(IDENTITY);
/** The key of the store record (records.ts). */
export const STORE_KEY: Buffer = Buffer.of(STORE);
/** The key of the mask record (mask.ts). */
export const MASK_KEY: Buffer = Buffer.of(MASK);

/** Asserts that `group` is an integer of 32 bits. */
export function assertGroup(group: GroupId): void {
  assert(
    Number.isInteger(group) && group >= 0 && group <= GROUP_MAX,
    'group id {} must fit into 32 bits',
    group,
  );
}

/** Asserts that `index` is an integer of 48 bits. */
export function assertIndex(index: number): void {
  assert(
    Number.isInteger(index) && index >= 0 && index <= INDEX_MAX,
    'index {} must fit into 48 bits',
    index,
  );
}

/** Writes a group key at the start of `target`, so that key and value can share one buffer and one checksum. */
export function writeGroupKey(target: Buffer, group: GroupId): void {
  target[0] = GROUP;
  target.writeUInt32BE(group, 1);
}

/** Writes an entry key at the start of `target`. */
export function writeEntryKey(target: Buffer, group: GroupId, index: number): void {
  target[0] = ENTRY;
  target.writeUInt32BE(group, 1);
  target.writeUIntBE(index, 5, 6);
}

/** Writes a chunk key at the start of `target`. */
export function writeChunkKey(target: Buffer, group: GroupId, index: number, chunk: number): void {
  target[0] = CHUNK;
  target.writeUInt32BE(group, 1);
  target.writeUIntBE(index, 5, 6);
  target.writeUInt32BE(chunk, 11);
}

/** The key of a group record. */
export function groupKey(group: GroupId): Buffer {
  const key = Buffer.allocUnsafe(GROUP_KEY_BYTES);
  writeGroupKey(key, group);
  return key;
}

/** The key of a log entry. */
export function entryKey(group: GroupId, index: number): Buffer {
  const key = Buffer.allocUnsafe(ENTRY_KEY_BYTES);
  writeEntryKey(key, group, index);
  return key;
}

/** The key of a snapshot chunk. */
export function chunkKey(group: GroupId, index: number, chunk: number): Buffer {
  const key = Buffer.allocUnsafe(CHUNK_KEY_BYTES);
  writeChunkKey(key, group, index, chunk);
  return key;
}

/** The group in a group, entry or chunk key. */
export function groupOfKey(key: Buffer): GroupId {
  return key.readUInt32BE(1);
}

/** The index in an entry or chunk key. */
export function indexOfKey(key: Buffer): number {
  return key.readUIntBE(5, 6);
}

/** The number of the chunk in a chunk key. */
export function chunkOfKey(key: Buffer): number {
  return key.readUInt32BE(11);
}

/** An inclusive range of keys. */
export interface KeyRange {
  readonly first: Buffer;
  readonly last: Buffer;
}

/** All group records. */
export const ALL_GROUPS: KeyRange = { first: groupKey(0), last: groupKey(GROUP_MAX) };

/** The entries from `firstIndex` to `lastIndex`, both included. */
export function entryRange(group: GroupId, firstIndex: number, lastIndex: number): KeyRange {
  return { first: entryKey(group, firstIndex), last: entryKey(group, lastIndex) };
}

/** All entries of a group, including garbage. */
export function allEntries(group: GroupId): KeyRange {
  return entryRange(group, 0, INDEX_MAX);
}

/** The chunks of all snapshots of a group, including garbage. */
export function chunkRange(group: GroupId): KeyRange {
  return { first: chunkKey(group, 0, 0), last: chunkKey(group, INDEX_MAX, CHUNK_MAX) };
}
