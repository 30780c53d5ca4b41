/**
 * Targets for the records of a database: entries, snapshot chunks, group state, the seal over all records, and the
 * owner.
 */
import { crc32 } from 'node:zlib';
import fc from 'fast-check';
import {
  decodeChunk,
  decodeEntry,
  encodeChunk,
  encodeEntry,
  type StoredRecord,
} from '../../../storage/codec.ts';
import { DamageFound } from '../../../storage/errors.ts';
import { decodeIdentity, encodeIdentity } from '../../../storage/identity.ts';
import {
  CHUNK_KEY_BYTES,
  chunkOfKey,
  ENTRY_KEY_BYTES,
  GROUP_KEY_BYTES,
  groupOfKey,
  IDENTITY_KEY,
  indexOfKey,
  MASK_KEY,
  STORE_KEY,
} from '../../../storage/keys.ts';
import { Mask, MASK_BYTES } from '../../../storage/mask.ts';
import {
  decodeGroupRecord,
  decodeMask,
  decodeStoreRecord,
  encodeGroupRecord,
  encodeMask,
  encodeStoreRecord,
  FORMAT_VERSION,
  type GroupRecord,
} from '../../../storage/records.ts';
import { type Outcome, promiseSame, readOr, type Target } from '../target.ts';
import { incarnation, natural, shortText } from './made.ts';

const CHECKSUM_BYTES = 4;
const MASK = new Mask(Uint8Array.from({ length: MASK_BYTES }, (_, i) => (7 * i) & 0xff));

interface Kind {
  /** The database distinguishes keys by length and first byte before it reads a value. */
  readonly keyBytes: number;
  readonly decode: (key: Buffer, value: Buffer) => unknown;
  /** The record as stored. */
  readonly encode: (read: never, key: Buffer) => StoredRecord;
  readonly sound: fc.Arbitrary<StoredRecord>;
}

const group = 3;
const data = fc.uint8Array({ maxLength: 40 });
const word = fc.nat(0xffff_ffff);
const position = fc.record({ index: natural, term: natural, timeMillis: natural });
const ids = fc.array(natural, { maxLength: 4 });
const someIds = fc.array(natural, { minLength: 1, maxLength: 4 });
const snapshot = fc.record(
  {
    index: natural,
    term: natural,
    timeMillis: natural,
    chunkCount: natural,
    byteLength: natural,
    voters: ids,
    outgoing: someIds,
    learners: someIds,
    checksum: word,
    epoch: natural.filter((epoch) => epoch > 0),
  },
  { requiredKeys: ['index', 'term', 'timeMillis', 'chunkCount', 'byteLength', 'voters'] },
);
const groupFields = {
  batch: natural,
  hardState: fc.record({ term: natural, vote: natural, commit: natural }),
  placement: natural,
  removedAt: natural,
  lastIndex: natural,
  lastChain: word,
  base: position,
  baseChain: word,
  oldestKey: natural,
  newestKey: natural,
};
const groupRecord: fc.Arbitrary<GroupRecord> = fc.oneof(
  fc.record(groupFields),
  fc.record({ ...groupFields, snapshot }),
);
const identity = fc.record({
  nodeId: natural,
  incarnation,
  facts: fc.record({
    clusterId: shortText(20),
    partitions: natural,
    replicas: natural,
    founders: fc.array(fc.record({ id: natural, incarnation }), { maxLength: 3 }),
    hash: shortText(9),
    formatVersion: fc.constant(FORMAT_VERSION),
  }),
});
const entry = fc.record({
  index: fc.nat(0xffff_ffff),
  term: natural,
  timeMillis: natural,
  kind: fc.constantFrom('command' as const, 'noop' as const, 'config' as const),
  data,
});

const CONTEXT = { group, mask: MASK };
const KINDS: readonly Kind[] = [
  {
    keyBytes: ENTRY_KEY_BYTES,
    decode: (key, value) => decodeEntry({ group: groupOfKey(key), mask: MASK }, key, value),
    encode: (read: ReturnType<typeof decodeEntry>, key) =>
      encodeEntry({ group: groupOfKey(key), mask: MASK }, read.entry, read.previousChain),
    sound: fc.tuple(entry, word).map(([each, chain]) => encodeEntry(CONTEXT, each, chain)),
  },
  {
    keyBytes: CHUNK_KEY_BYTES,
    decode: (key, value) => decodeChunk({ group: groupOfKey(key), mask: MASK }, key, value),
    encode: (read: Uint8Array, key) =>
      encodeChunk(
        { group: groupOfKey(key), mask: MASK },
        { index: indexOfKey(key), chunk: chunkOfKey(key) },
        read,
      ),
    sound: fc
      .tuple(word, word, data)
      .map(([index, chunk, bytes]) => encodeChunk(CONTEXT, { index, chunk }, bytes)),
  },
  {
    keyBytes: GROUP_KEY_BYTES,
    decode: decodeGroupRecord,
    encode: (read: ReturnType<typeof decodeGroupRecord>) => encodeGroupRecord(read.group, read.record),
    sound: fc.tuple(word, groupRecord).map(([id, each]) => encodeGroupRecord(id, each)),
  },
  {
    keyBytes: STORE_KEY.length,
    decode: decodeStoreRecord,
    encode: encodeStoreRecord,
    sound: fc
      .record({ batch: natural, groupCount: word, digest: fc.record({ high: word, low: word }) })
      .map(encodeStoreRecord),
  },
  {
    keyBytes: IDENTITY_KEY.length,
    decode: (key, value) => decodeIdentity(key, value, FORMAT_VERSION),
    encode: encodeIdentity,
    sound: identity.map(encodeIdentity),
  },
  {
    keyBytes: MASK_KEY.length,
    decode: decodeMask,
    encode: () => encodeMask(new Uint8Array(MASK_BYTES)),
    sound: fc.uint8Array({ minLength: MASK_BYTES, maxLength: MASK_BYTES }).map(encodeMask),
  },
];

/** The first byte chooses the kind of record, and whether its checksum is corrected. The rest is key and value. */
function run(input: Buffer): Outcome {
  const how = input[0] ?? 0;
  const at = how % KINDS.length;
  const { keyBytes, decode, encode } = KINDS[at]!;
  const stored = Buffer.alloc(Math.max(keyBytes, input.length - 1));
  stored.set(input.subarray(1));
  const isSealed = how < 0xc0 && stored.length >= keyBytes + CHECKSUM_BYTES;
  const checksumAt = stored.length - CHECKSUM_BYTES;
  if (isSealed) stored.writeUInt32LE(crc32(stored.subarray(0, checksumAt)), checksumAt);
  const key = stored.subarray(0, keyBytes);
  const read = readOr([DamageFound], () => decode(key, stored.subarray(keyBytes)));
  if ('refused' in read) return `refused: ${reported(read.refused)}`;
  checkAgain(at, key, read.value, { decode, encode });
  return `read ${at}`;
}

/** The kind of mistake, without the contents of the record. */
function reported(refused: string): string {
  return refused.replace(/^refused: /, '').replace(/ holds .*/s, '');
}

function checkAgain(
  at: number,
  key: Buffer,
  read: unknown,
  { decode, encode }: Omit<Kind, 'keyBytes' | 'sound'>,
): void {
  const isOtherLayout = typeof read === 'object' && read !== null && Object.keys(read).length === 1;
  if (read instanceof Mask || isOtherLayout) return;
  const again = encode(read as never, key);
  promiseSame(withoutSeal(decode(again.key, again.value)), withoutSeal(read), `a record of kind ${at} again`);
}

/** Checksums include the key, and every reader has already checked its first byte. */
function withoutSeal(read: unknown): unknown {
  if (typeof read !== 'object' || read === null || read instanceof Uint8Array) return read;
  return { ...read, checksum: 0, chain: 0 };
}

export const STORAGE: readonly Target[] = [
  {
    name: 'storage-records',
    parser: 'records of the database',
    sound: fc.oneof(
      ...KINDS.map(({ sound }, at) =>
        sound.map(({ key, value }) => Buffer.concat([Buffer.of(at), key, value])),
      ),
    ),
    bytesMax: 8_192,
    bytesPerByteMax: 512,
    run,
  },
];
