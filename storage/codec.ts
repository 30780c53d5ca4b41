/**
 * Encodes log entries and snapshot chunks, and the checksum that ends every stored value. It checks bytes only;
 * verify.ts checks that entries follow each other.
 */
import { crc32 } from 'node:zlib';
import type { Entry, EntryKind, GroupId } from '../raft/types.ts';
import { DamageFound } from './errors.ts';
import {
  CHUNK_KEY_BYTES,
  chunkOfKey,
  ENTRY_KEY_BYTES,
  indexOfKey,
  writeChunkKey,
  writeEntryKey,
} from './keys.ts';
import type { Mask } from './mask.ts';

/**
 * CRC-32 (IEEE) over key and value, from node:zlib. LevelDB itself uses CRC-32C: with two different polynomials, no
 * error pattern is invisible to both.
 */
export const CHECKSUM_BYTES = 4;

/** A key and its value, in one buffer, and the value's checksum. */
export interface StoredRecord {
  readonly key: Buffer;
  readonly value: Buffer;
  readonly checksum: number;
}

/** Completes a record: `buffer` contains the key, the value and 4 free bytes for the checksum. */
export function sealRecord(buffer: Buffer, keyBytes: number): StoredRecord {
  const checksumAt = buffer.length - CHECKSUM_BYTES;
  const checksum = crc32(buffer.subarray(0, checksumAt));
  buffer.writeUInt32LE(checksum, checksumAt);
  return { key: buffer.subarray(0, keyBytes), value: buffer.subarray(keyBytes), checksum };
}

/**
 * Checks a value from disk and returns its checksum. The checksum covers the key, so a valid value under a wrong key is
 * detected as well.
 *
 * @param minBytes the shortest valid value, without the checksum
 * @param what names the record in an error
 * @throws DamageFound if the value is too short or its checksum is wrong
 */
export function checkRecord(key: Buffer, value: Buffer, minBytes: number, what: string): number {
  if (value.length < minBytes + CHECKSUM_BYTES) {
    throw new DamageFound(`${what} is ${value.length} bytes long, too short to be valid`);
  }
  const checksumAt = value.length - CHECKSUM_BYTES;
  const found = crc32(value.subarray(0, checksumAt), crc32(key));
  const stored = value.readUInt32LE(checksumAt);
  if (found !== stored) {
    throw new DamageFound(`${what} has checksum ${hex(found)} where ${hex(stored)} was stored`);
  }
  return stored;
}

function hex(value: number): string {
  return `0x${value.toString(16).padStart(8, '0')}`;
}

// Entry value: kind u8, term f64, timeMillis f64, previous chain u32, masked data, checksum u32. All little-endian.
const ENTRY_HEADER_BYTES = 1 + 8 + 8 + 4;
const KIND_COMMAND = 0;
const KIND_NOOP = 1;
const KIND_CONFIG = 2;

/** The group of a record, and the mask for its data. */
export interface RecordContext {
  readonly group: GroupId;
  readonly mask: Mask;
}

/**
 * Encodes an entry that follows the entry with chain value `previousChain`. The checksum covers that value too and is
 * this entry's own chain value: a hash chain that needs no second pass over the data.
 */
export function encodeEntry(
  { group, mask }: RecordContext,
  entry: Entry,
  previousChain: number,
): StoredRecord {
  const { data } = entry;
  const buffer = Buffer.allocUnsafe(ENTRY_KEY_BYTES + ENTRY_HEADER_BYTES + data.length + CHECKSUM_BYTES);
  writeEntryKey(buffer, group, entry.index);
  let at = ENTRY_KEY_BYTES;
  at = buffer.writeUInt8(kindCode(entry.kind), at);
  at = buffer.writeDoubleLE(entry.term, at);
  at = buffer.writeDoubleLE(entry.timeMillis, at);
  at = buffer.writeUInt32LE(previousChain, at);
  buffer.set(mask.apply(data), at);
  return sealRecord(buffer, ENTRY_KEY_BYTES);
}

/** An entry from disk with its links in the hash chain. */
export interface StoredEntry {
  readonly entry: Entry;
  readonly previousChain: number;
  readonly chain: number;
}

/**
 * Checks and decodes an entry. Its data is a copy, independent of the read buffer.
 *
 * @throws DamageFound
 */
export function decodeEntry({ group, mask }: RecordContext, key: Buffer, value: Buffer): StoredEntry {
  const index = indexOfKey(key);
  const what = `entry ${index} of group ${group}`;
  const chain = checkRecord(key, value, ENTRY_HEADER_BYTES, what);
  const kind = kindOf(value.readUInt8(0), what);
  const data = mask.apply(value.subarray(ENTRY_HEADER_BYTES, value.length - CHECKSUM_BYTES));
  const entry = { index, term: value.readDoubleLE(1), timeMillis: value.readDoubleLE(9), kind, data };
  return { entry, previousChain: value.readUInt32LE(17), chain };
}

function kindCode(kind: EntryKind): number {
  switch (kind) {
    case 'command':
      return KIND_COMMAND;
    case 'noop':
      return KIND_NOOP;
    case 'config':
      return KIND_CONFIG;
  }
}

function kindOf(code: number, what: string): EntryKind {
  if (code === KIND_COMMAND) return 'command';
  if (code === KIND_NOOP) return 'noop';
  if (code === KIND_CONFIG) return 'config';
  throw new DamageFound(`${what} has unknown kind ${code}`);
}

/** The index of a snapshot and the number of a chunk in it, counted from 0. */
export interface ChunkPlace {
  readonly index: number;
  readonly chunk: number;
}

/** Encodes a snapshot chunk. */
export function encodeChunk(
  { group, mask }: RecordContext,
  place: ChunkPlace,
  data: Uint8Array,
): StoredRecord {
  const buffer = Buffer.allocUnsafe(CHUNK_KEY_BYTES + data.length + CHECKSUM_BYTES);
  writeChunkKey(buffer, group, place.index, place.chunk);
  buffer.set(mask.apply(data), CHUNK_KEY_BYTES);
  return sealRecord(buffer, CHUNK_KEY_BYTES);
}

/**
 * Checks a chunk and returns a copy of its data.
 *
 * @throws DamageFound
 */
export function decodeChunk({ group, mask }: RecordContext, key: Buffer, value: Buffer): Uint8Array {
  checkRecord(key, value, 0, `chunk ${chunkOfKey(key)} of snapshot ${indexOfKey(key)} of group ${group}`);
  return mask.apply(value.subarray(0, value.length - CHECKSUM_BYTES));
}
