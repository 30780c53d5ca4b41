/** Tests the frames with few fields: all fields are decoded, and malformed frames are refused. */
import { describe, expect, it } from 'vitest';
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
} from '../../src/wire/small-frames.ts';
import { pack } from '../../src/wire/fields.ts';
import { FrameError } from '../../src/wire/frame.ts';
import { decodeNodeReport, encodeNodeReport, type NodeReport } from '../../src/wire/node-report.ts';
import {
  decodeUsageQuestion,
  decodeUsageReport,
  encodeUsageQuestion,
  encodeUsageReport,
  type UsageQuestion,
  type UsageReported,
} from '../../src/wire/usage.ts';

interface Kind<T> {
  readonly encode: (value: T) => Buffer;
  readonly decode: (payload: Uint8Array) => T;
  readonly samples: readonly T[];
  readonly wrong: readonly unknown[];
}

/** Lets each kind have a type of its own. */
function kind<T>(each: Kind<T>): Kind<unknown> {
  return each as Kind<unknown>;
}

const PARTITION = {
  partition: 3,
  isLeader: true,
  term: 4,
  commit: 9,
  applied: 8,
  lastIndex: 10,
  rulesVersion: 3,
  members: [1, 2],
};
const FIGURES = {
  p99Millis: 1.5,
  diskP99Millis: 2.25,
  clockPpm: -3.5,
  stateBytes: 10,
  stateBytesMax: 20,
};
const NO_KEYS = { keys: [], othersMax: 0 };
const KINDS = {
  ping: kind({
    encode: encodePing,
    decode: decodePing,
    samples: [{ process: 7, sentMillis: 12.25 }],
    wrong: ['ping', [1], [1.5, 2], [1, '2'], [1, Number.NaN]],
  }),
  pong: kind({
    encode: encodePong,
    decode: decodePong,
    samples: [{ asker: 7, sentMillis: 12.25, process: 8, peerMillis: 1e6, wallMillis: 1.8e12 }],
    wrong: ['pong', [1], [1, 1, 2, 3], [1, 'x', 2, 3, 4], [1, 1, 2, Number.NaN, 4], [1, 1, 2, 3, Number.NaN]],
  }),
  groups: kind({
    encode: encodeGroupsOfVersion,
    decode: decodeGroupsOfVersion,
    samples: [
      { version: 1, groups: [] },
      { version: 9, groups: [0, 4, 2 ** 40] },
    ],
    wrong: [{}, [], [1], [1, 2], [-1, []], [1, ['x']], [1, [0.5]]],
  }),
  room: kind({
    encode: encodeRoom,
    decode: decodeRoom,
    samples: ['free', 'full', 'exhausted'],
    wrong: [[], [3], ['full'], [null]],
  }),
  load: kind({
    encode: encodeLoadReport,
    decode: decodeLoadReport,
    samples: [
      { busyPermille: 0, sparePermille: 2_000, askedPerSecond: 7, mayLead: true },
      {
        busyPermille: 999,
        sparePermille: 0,
        askedPerSecond: 0,
        mayLead: false,
        decided: { term: 4, target: 0 },
      },
    ],
    wrong: [
      'load',
      [],
      [1, 2, 3],
      [1, 2, 3, 4],
      [-1, 2, 3, true],
      [1, 2, 3, true, 'x', 1],
      [1, 2, 3, true, 4, 0.5],
    ],
  }),
  report: kind<NodeReport>({
    encode: encodeNodeReport,
    decode: (payload) => decodeNodeReport(2, payload),
    samples: [
      { node: 2, pid: 4711, clock: 'fit', partitions: [], speaks: 1 },
      { node: 2, pid: 4711, clock: 'fit', partitions: [], speaks: 1, resp: { host: '::1', port: 65_535 } },
      { node: 2, pid: 4711, clock: 'fit', partitions: [], speaks: 2, tokensVersion: 3, release: '1.0.0' },
      {
        node: 2,
        pid: 1,
        clock: 'slow',
        partitions: [
          PARTITION,
          { ...PARTITION, isLeader: false, members: [] },
          { ...PARTITION, restoredMillis: 60_000 },
        ],
        speaks: 1,
      },
      { node: 2, pid: 1, clock: 'fit', partitions: [], speaks: 1, pace: { figures: FIGURES, times: [0, 3] } },
      {
        node: 2,
        pid: 1,
        clock: 'fit',
        partitions: [],
        speaks: 1,
        pace: { figures: { ...FIGURES, p99Millis: null, diskP99Millis: null, clockPpm: null }, times: [] },
      },
    ],
    wrong: [
      [1, 0],
      [1, 0, []],
      [1, 3, [], null, null],
      [1, 0, [[3, true, 4, 9, 8, 10]], null, null],
      [1, 0, [[3, 1, 4, 9, 8, 10, []]], null, null],
      [1, 0, [[3, true, 4, 9, 8, 10, 3, '0123456789abcdeg', []]], null, null],
      [1, 0, [[3, true, 4, 9, 8, 10, 3, []]], null, null],
      [1, 0, [], 'h/', 7],
      [1, 0, [], 'h', 65_536],
      [1, 0, [], null, null, null, null, null],
      [1, 0, [], null, null, null, 1, 'of today'],
      [1, 0, [], null, null, null, 1, null, 'pace'],
      [1, 0, [], null, null, null, 1, null, [1, 2, 3, 4, 5]],
      [1, 0, [], null, null, null, 1, null, [1, 2, Number.NaN, 4, 5, []]],
      [1, 0, [], null, null, null, 1, null, [1, 2, 3, -4, 5, []]],
      [1, 0, [], null, null, null, 1, null, [1, 2, 3, 4, 5, Array.from({ length: 257 }, () => 0)]],
    ],
  }),
  usage: kind<UsageQuestion>({
    encode: encodeUsageQuestion,
    decode: decodeUsageQuestion,
    samples: [
      { id: 7, query: { minutes: 1, ruleId: undefined, top: 0 }, untilMinute: 29_000_000 },
      { id: 0, query: { minutes: 1_440, ruleId: 'default', top: 100 }, untilMinute: 0 },
    ],
    wrong: [
      [1, 1],
      [1, 0, null, 0, 5],
      [1, 1_441, null, 0, 5],
      [1, 1, 3, 0, 5],
      [1, 1, null, 101, 5],
    ],
  }),
  usageReported: kind<UsageReported>({
    encode: encodeUsageReport,
    decode: decodeUsageReport,
    samples: [
      {
        id: 7,
        usage: {
          rules: [],
          history: [0, 0, 0, 0, 0, 0],
          topFromMinute: 9,
          allowed: NO_KEYS,
          denied: NO_KEYS,
        },
      },
      {
        id: 7,
        usage: {
          rules: [{ ruleId: 'default', counts: [4, 3, 2, 5, 1, 6] }],
          history: [1, 2, 2, 0, 4, 1, 3, 1, 0, 5, 0, 2],
          topFromMinute: 9,
          allowed: { keys: [{ rule: 'default', key: 'ada', count: 4, error: 1 }], othersMax: 1 },
          denied: NO_KEYS,
          late: [0, 65],
        },
      },
    ],
    wrong: [
      [7, [], [0, 0, 0, 0, 0, 0], 9, [0, []], [0, []], [1, 2]],
      [7, [], [0, 0, 0, 0, 0, 0], 9, [0, []], [0, []], [256]],
      [7, [], [0, 0, 0, 0, 0, 0], 9, [0, []]],
      [7, [], [], 9, [0, []], [0, []]],
      [7, [], [0, 0, 0, 0, 0], 9, [0, []], [0, []]],
      [7, [], [0, 0, 0, 0, 0, -1], 9, [0, []], [0, []]],
      [7, [['', [1, 2, 3, 4, 5, 6]]], [0, 0, 0, 0, 0, 0], 9, [0, []], [0, []]],
      [7, [['a', [1, 2, 3, 4, 5]]], [0, 0, 0, 0, 0, 0], 9, [0, []], [0, []]],
      [7, [], [0, 0, 0, 0, 0, 0], 9, [0, [['a', 'x'.repeat(1_025), 1, 0]]], [0, []]],
      [7, [], [0, 0, 0, 0, 0, 0], 9, [0, [['a', 'ada', 1]]], [0, []]],
    ],
  }),
};

describe.each(Object.entries(KINDS))('a frame of a %s', (_name, { encode, decode, samples, wrong }) => {
  it.each(samples.map((sample) => [sample]))('is decoded as it was encoded: %j', (sample) => {
    expect(decode(encode(sample))).toEqual(sample);
  });

  it.each(wrong.map((value) => [value]))('of another shape is a FrameError: %j', (value) => {
    expect(() => decode(pack(value))).toThrow(FrameError);
  });
});
