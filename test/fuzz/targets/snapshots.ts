/** Targets for snapshots from disk or from another node: those of a limiter, and those of group 0 with its commands. */
import { FIRST_RULES } from '../../meta/first-rules.ts';
import { loadHash32 } from '../../../src/partition/hash.ts';
import fc from 'fast-check';
import { Digest, InvalidSnapshotError } from '../../../src/limiter/state/snapshot-bytes.ts';
import { LimiterStateMachine } from '../../../src/limiter/state-machine.ts';
import {
  decodeMetaCommand,
  decodeMetaRecord,
  encodeMeta,
  MetaDecodeError,
  NewerClusterError,
} from '../../../src/meta/meta-form.ts';
import { applyMetaCommand } from '../../../src/meta/meta-state.ts';
import type { Introduction, MetaCommand, MetaRecord } from '../../../src/meta/cluster-state.ts';
import { Harness, restoreInto, snapshotOf } from '../../limiter/harness.ts';
import { type Outcome, promise, promiseSame, readOr, type Target } from '../target.ts';
import { address, incarnation, batchedRequest, table } from './made.ts';
import { nearJson } from './json.ts';

/** Bytes of the length before a chunk. */
const LENGTH_BYTES = 2;
const DIGEST_BYTES = 8;
/** Values that are no command or record, and values that only a newer program reads. */
const META_ERRORS = [MetaDecodeError, NewerClusterError];

/** Chunks, each behind its length. A chunk that claims more bytes than there are ends with them. */
function chunksIn(input: Buffer): Buffer[] {
  const chunks: Buffer[] = [];
  for (let at = 0; at + LENGTH_BYTES <= input.length;) {
    const from = at + LENGTH_BYTES;
    at = from + input.readUInt16LE(at);
    chunks.push(input.subarray(from, at));
  }
  return chunks;
}

function joined(chunks: readonly Uint8Array[]): Buffer {
  return Buffer.concat(
    chunks.flatMap((chunk) => [Buffer.of(chunk.length & 0xff, chunk.length >>> 8), chunk]),
  );
}

/** Corrects the digest, because otherwise it alone would detect all damage. */
function sealed(chunks: readonly Buffer[]): readonly Buffer[] {
  const last = chunks.at(-1);
  if (last?.length !== DIGEST_BYTES) return chunks;
  const digest = new Digest();
  for (const chunk of chunks.slice(0, -1)) digest.update(chunk);
  const end = Buffer.alloc(DIGEST_BYTES);
  for (const [i, word] of digest.words().entries()) end.writeUInt32LE(word, 4 * i);
  return [...chunks.slice(0, -1), end];
}

function runLimiter(input: Buffer): Outcome {
  const { machine } = new Harness();
  const read = readOr([InvalidSnapshotError], () => restoreInto(machine, sealed(chunksIn(input))));
  if ('refused' in read) return read.refused;
  const twin = new LimiterStateMachine();
  restoreInto(twin, snapshotOf(machine));
  promise(twin.hash() === machine.hash(), 'a snapshot of the restored state has the same state');
  return 'read';
}

const asks = fc.array(fc.tuple(fc.array(batchedRequest, { minLength: 1, maxLength: 5 }), fc.nat(2_000)), {
  maxLength: 6,
});
const limiterSnapshot = fc.tuple(table, asks, table).map(([rules, batches, others]) => {
  const harness = new Harness();
  harness.rules(rules);
  for (const [requests, millis] of batches) {
    harness.nowMillis += millis;
    harness.ask(...requests);
  }
  harness.rules({ ...others, version: rules.version + 1 });
  return joined(snapshotOf(harness.machine));
});

const hash = await loadHash32();

const introduction: fc.Arbitrary<Introduction> = fc.record({
  id: fc.integer({ min: 1, max: 9 }),
  incarnation,
  http: address,
  peer: address,
});
const change = fc.record(
  {
    add: fc.record({ id: fc.integer({ min: 10, max: 20 }), http: address, peer: address }),
    remove: fc.integer({ min: 1, max: 4 }),
  },
  { requiredKeys: [] },
);
const command: fc.Arbitrary<MetaCommand> = fc.oneof(
  fc.record({
    type: fc.constant('create' as const),
    nodes: fc.uniqueArray(introduction, { minLength: 1, maxLength: 4, selector: ({ id }) => id }),
    replicas: fc.constant(1),
    partitions: fc.integer({ min: 1, max: 5 }),
    rules: table,
    clusterVersion: fc.constant(1),
  }),
  fc.record({ type: fc.constant('nodes' as const), change }),
  fc.record({ type: fc.constant('rules' as const), table, base: fc.nat(3) }),
  fc.record({ type: fc.constant('introduce' as const), node: introduction }),
  fc.record({ type: fc.constant('settled' as const), version: fc.nat(4) }),
);
const record: fc.Arbitrary<MetaRecord | null> = fc
  .array(command, { maxLength: 8 })
  .map((commands) =>
    commands.reduce<MetaRecord | undefined>(
      (before, each) => applyMetaCommand(before, each, hash).record,
      undefined,
    ),
  )
  .map((made) => made ?? null);

const FOUNDED = applyMetaCommand(
  undefined,
  {
    type: 'create',
    rules: FIRST_RULES,
    nodes: [{ id: 1, incarnation: 'f'.repeat(32) }],
    replicas: 1,
    partitions: 2,
    clusterVersion: 1,
  },
  hash,
).record;

function runMetaCommand(input: Buffer): Outcome {
  const read = readOr(META_ERRORS, () => decodeMetaCommand(input));
  if ('refused' in read) return read.refused;
  applyMetaCommand(FOUNDED, read.value, hash);
  return `read ${read.value.type}`;
}

/** The first byte chooses where the rest is cut into two chunks. */
function runMetaRecord(input: Buffer): Outcome {
  const text = input.subarray(1);
  const at = input[0] ?? 0;
  const read = readOr(META_ERRORS, () => decodeMetaRecord([text.subarray(0, at), text.subarray(at)]));
  if ('refused' in read) return read.refused;
  // Compared as JSON: unknown fields of a record are kept, and a number in them may be too large for JSON.
  const bytes = encodeMeta(read.value ?? null);
  promiseSame(encodeMeta(decodeMetaRecord([bytes]) ?? null), bytes, 'a record again');
  for (const each of COMMANDS) applyMetaCommand(read.value, each, hash);
  return 'read';
}

const COMMANDS = fc.sample(command, { seed: 1, numRuns: 8 });
const WORDS = ['null', '[]', '{}', '"__proto__":', '{"id":1}', ',', '\\u0000', '1e400'];
const COMMON = { words: WORDS, bytesMax: 8_192, bytesPerByteMax: 512 };

export const SNAPSHOTS: readonly Target[] = [
  {
    name: 'limiter-snapshots',
    parser: 'snapshots of the limiter',
    sound: limiterSnapshot,
    bytesMax: 16_384,
    bytesPerByteMax: 2_048,
    run: runLimiter,
  },
  {
    name: 'meta-commands',
    parser: 'log entries of group 0',
    sound: command.map(encodeMeta),
    near: nearJson(command),
    ...COMMON,
    run: runMetaCommand,
  },
  {
    name: 'meta-snapshots',
    parser: 'snapshots of group 0',
    sound: fc
      .tuple(fc.nat(255), record)
      .map(([at, made]) => Buffer.concat([Buffer.of(at), encodeMeta(made)])),
    near: fc.tuple(fc.nat(255), nearJson(record)).map(([at, made]) => Buffer.concat([Buffer.of(at), made])),
    ...COMMON,
    run: runMetaRecord,
  },
];
