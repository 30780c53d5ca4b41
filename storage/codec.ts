/**
 * How log entries and snapshot chunks become bytes, and the checksum every stored value ends with.
 * Checks bytes only; whether entries follow each other is verify.ts's business.
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
 * The checksum is CRC-32 (IEEE) over key and value, from node:zlib. LevelDB itself uses CRC-32C: another
 * polynomial, so that no error pattern can be invisible to both, and native code instead of our own.
 */
export const CHECKSUM_BYTES = 4;

/** A key and its value, in one buffer, with the value's checksum at hand. */
export interface StoredRecord {
  readonly key: Buffer;
  readonly value: Buffer;
  readonly checksum: number;
}

/** Completes a record: `buffer` is key, value and room for the checksum. */
export function sealRecord(buffer: Buffer, keyBytes: number): StoredRecord {
  const checksumAt = buffer.length - CHECKSUM_BYTES;
  const checksum = crc32(buffer.subarray(0, checksumAt));
  buffer.writeUInt32LE(checksum, checksumAt);
  return { key: buffer.subarray(0, keyBytes), value: buffer.subarray(keyBytes), checksum };
}

/**
 * Checks a value read from disk and returns its checksum. The key is included, so that an intact value under the
 * wrong key is found as well. Throws DamageFound naming `what`.
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

/** Where a record belongs, and what its data is masked with. */
export interface RecordContext {
  readonly group: GroupId;
  readonly mask: Mask;
}

/**
 * Encodes an entry behind the one whose chain value is `previousChain`. The checksum covers that value too, and so
 * is the entry's own chain value: a hash chain that costs no second pass over the data.
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

export interface StoredEntry {
  readonly entry: Entry;
  readonly previousChain: number;
  readonly chain: number;
}

/** Checks and decodes an entry. Its data is a copy: it outlives the buffer of the read. */
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

/** Which chunk of which snapshot. */
export interface ChunkPlace {
  readonly index: number;
  readonly chunk: number;
}

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

/** Checks a chunk and returns a copy of its data. */
export function decodeChunk({ group, mask }: RecordContext, key: Buffer, value: Buffer): Uint8Array {
  checkRecord(key, value, 0, `chunk ${chunkOfKey(key)} of snapshot ${indexOfKey(key)} of group ${group}`);
  return mask.apply(value.subarray(0, value.length - CHECKSUM_BYTES));
}
