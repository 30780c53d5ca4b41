/**
 * Targets for frames with MessagePack payloads: the hello and its answers, clock readings, reports, usage, cluster
 * changes.
 */
import fc from 'fast-check';
import { USAGE_COLUMNS } from '../../../src/api/usage.ts';
import { VERSION_BOUND, VERSIONS, type VersionRange } from '../../../src/api/versions.ts';
import {
  decodePing,
  decodePong,
  encodePing,
  encodePong,
  decodeGroupsOfVersion,
  encodeGroupsOfVersion,
  decodeLoadReport,
  encodeLoadReport,
  decodeRoom,
  encodeRoom,
} from '../../../src/wire/small-frames.ts';
import { decodeChange, decodeResult, encodeChange, encodeResult } from '../../../src/meta/change-frames.ts';
import { FrameError } from '../../../src/wire/frame.ts';
import {
  decodeHello,
  decodeRefusal,
  decodeWelcome,
  encodeHello,
  encodeRefusal,
  encodeWelcome,
  REFUSAL_CODES,
} from '../../../src/wire/hello.ts';
import { decodeNodeReport, encodeNodeReport } from '../../../src/wire/node-report.ts';
import {
  decodeUsageQuestion,
  decodeUsageReport,
  encodeUsageQuestion,
  encodeUsageReport,
} from '../../../src/wire/usage.ts';
import { type Outcome, promiseSame, readOr, type Target } from '../target.ts';
import { address, incarnation, natural, shortText, table } from './made.ts';

interface Kind {
  readonly encode: (value: never) => Buffer;
  readonly decode: (payload: Uint8Array) => unknown;
  readonly sound: fc.Arbitrary<unknown>;
}

/** Gives each kind its own type. */
function kind<T>(
  encode: (value: T) => Buffer,
  decode: (payload: Uint8Array) => T,
  sound: fc.Arbitrary<T>,
): Kind {
  return { encode, decode, sound };
}

const millis = fc.double({ noNaN: true, noDefaultInfinity: true, min: 0 });
const label = fc.constantFrom('eu-1a', 'rack.7', null);
const nodeId = fc.integer({ min: 1, max: 0x7fff_ffff });
const keys = fc.record({
  othersMax: natural,
  keys: fc.array(fc.record({ rule: shortText(4), key: shortText(4), count: natural, error: natural }), {
    maxLength: 2,
  }),
});
const partition = fc.record({
  partition: natural,
  isLeader: fc.boolean(),
  term: natural,
  commit: natural,
  applied: natural,
  lastIndex: natural,
  rulesVersion: natural,
  members: fc.array(natural, { maxLength: 3 }),
});

const WIDTH = USAGE_COLUMNS.length;
const minute = fc.array(natural, { minLength: WIDTH, maxLength: WIDTH });
const usage = fc.record({
  rules: fc.array(fc.record({ ruleId: shortText(4), counts: minute }), { maxLength: 2 }),
  history: fc.array(minute, { minLength: 1, maxLength: 3 }).map((minutes) => minutes.flat()),
  topFromMinute: natural,
  allowed: keys,
  denied: keys,
});

/** Two numbers, the lower one first. */
const speaks = fc
  .tuple(fc.integer({ min: 1, max: VERSION_BOUND }), fc.integer({ min: 1, max: VERSION_BOUND }))
  .map(([a, b]): VersionRange => ({ min: Math.min(a, b), max: Math.max(a, b) }));

const KINDS: readonly Kind[] = [
  kind(
    encodeHello,
    decodeHello,
    fc.record(
      {
        node: natural,
        incarnation,
        target: natural,
        targetIncarnation: incarnation,
        facts: shortText(32),
        peer: address,
        http: address,
        speaks,
      },
      { requiredKeys: ['node', 'incarnation', 'target', 'facts', 'speaks'] },
    ),
  ),
  kind(encodeWelcome, decodeWelcome, fc.record({ incarnation, speaks })),
  kind(
    encodeRefusal,
    decodeRefusal,
    fc.record({ code: fc.constantFrom(...REFUSAL_CODES), text: shortText(30) }),
  ),
  kind(encodePing, decodePing, fc.record({ process: natural, sentMillis: millis })),
  kind(
    encodePong,
    decodePong,
    fc.record({
      asker: natural,
      sentMillis: millis,
      process: natural,
      peerMillis: millis,
      wallMillis: millis,
    }),
  ),
  kind(
    encodeGroupsOfVersion,
    decodeGroupsOfVersion,
    fc.record({ version: natural, groups: fc.array(natural, { maxLength: 5 }) }),
  ),
  kind(
    encodeLoadReport,
    decodeLoadReport,
    fc.record({
      busyPermille: natural,
      sparePermille: natural,
      askedPerSecond: natural,
      mayLead: fc.boolean(),
    }),
  ),
  kind(encodeRoom, decodeRoom, fc.constantFrom('free', 'full', 'exhausted')),
  kind(
    encodeNodeReport,
    (payload) => decodeNodeReport(3, payload),
    fc.record(
      {
        node: fc.constant(3),
        pid: natural,
        clock: fc.constant('fit' as const),
        partitions: fc.array(partition, { maxLength: 3 }),
        resp: address,
        speaks: natural,
        release: fc.constantFrom('0.1.0', 'unknown'),
        pace: fc.record({
          figures: fc.record({
            p99Millis: fc.option(millis),
            diskP99Millis: fc.option(millis),
            clockPpm: fc.option(millis),
            stateBytes: natural,
            stateBytesMax: natural,
          }),
          times: fc.array(natural, { maxLength: 65 }),
        }),
      },
      { requiredKeys: ['node', 'pid', 'clock', 'partitions', 'speaks'] },
    ),
  ),
  kind(
    encodeUsageQuestion,
    decodeUsageQuestion,
    fc.record({
      id: natural,
      query: fc.record({
        minutes: fc.integer({ min: 1, max: 60 }),
        ruleId: fc.constantFrom(undefined, 'r'),
        top: fc.nat(5),
      }),
      untilMinute: natural,
    }),
  ),
  kind(encodeUsageReport, decodeUsageReport, fc.record({ id: natural, usage })),
  kind(
    encodeChange,
    decodeChange,
    fc.record({
      id: natural,
      change: fc.oneof(
        fc.record({
          type: fc.constant('nodes' as const),
          change: fc.record(
            {
              add: fc.record(
                {
                  id: nodeId,
                  http: address,
                  peer: address,
                  zone: fc.constant('eu-1a'),
                  host: fc.constant('rack.7'),
                },
                { requiredKeys: ['id', 'http', 'peer'] },
              ),
              remove: nodeId,
            },
            { requiredKeys: [] },
          ),
        }),
        fc.record({
          type: fc.constant('drain' as const),
          change: fc.record({ node: nodeId, isDraining: fc.boolean() }),
        }),
        fc.record({
          type: fc.constant('label' as const),
          change: fc.record({ node: nodeId, zone: label, host: label }, { requiredKeys: ['node', 'zone'] }),
        }),
        fc.record({
          type: fc.constant('upgrade' as const),
          change: fc.record({ version: fc.integer(VERSIONS) }),
        }),
        fc.record(
          { type: fc.constant('rules' as const), table, base: natural, definitions: shortText(20) },
          { requiredKeys: ['type', 'table', 'base'] },
        ),
      ),
    }),
  ),
  kind(
    encodeResult,
    decodeResult,
    fc.record({
      id: natural,
      result: fc.oneof(
        fc.record({ ok: fc.constant(true as const), version: natural }),
        fc.record({
          ok: fc.constant(false as const),
          reason: fc.constant('notLeader' as const),
          leader: natural,
        }),
        fc.record({ ok: fc.constant(false as const), reason: fc.constant('rulesChanged' as const) }),
        fc.record({
          ok: fc.constant(false as const),
          reason: fc.constant('nodesBehind' as const),
          behind: fc.array(fc.record({ node: nodeId, speaks: natural }, { requiredKeys: ['node'] }), {
            maxLength: 3,
          }),
        }),
      ),
    }),
  ),
];

/** A payload read after every input, to check that the input left no state behind. */
const CANARY = { process: 4_711, sentMillis: 12.25 };
const CANARY_BYTES = encodePing(CANARY);

/** The first byte chooses the kind of frame; the rest is its payload. */
function run(input: Buffer): Outcome {
  const at = (input[0] ?? 0) % KINDS.length;
  const { encode, decode } = KINDS[at]!;
  const read = readOr([FrameError], () => decode(input.subarray(1)));
  promiseSame(decodePing(CANARY_BYTES), CANARY, 'the payload that is read next');
  if ('refused' in read) return read.refused;
  promiseSame(decode(encode(read.value as never)), read.value, 'the same again');
  return `read ${at}`;
}

export const PAYLOADS: readonly Target[] = [
  {
    name: 'payloads',
    parser: 'frames of MessagePack: hello, reports, usage, changes and the rest',
    sound: fc.oneof(
      ...KINDS.map(({ encode, sound }, at) =>
        sound.map((value) => Buffer.concat([Buffer.of(at), encode(value as never)])),
      ),
    ),
    bytesMax: 4_096,
    bytesPerByteMax: 512,
    run,
  },
];
