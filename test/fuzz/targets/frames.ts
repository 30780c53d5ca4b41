/**
 * Targets for the stream of frames, and for the most frequent frames: Raft messages, forwarded requests and their
 * answers.
 */
import { crc32 } from 'node:zlib';
import fc from 'fast-check';
import { UNAVAILABLE_REASONS } from '../../../src/api/refusals.ts';
import { CONFLICT_FIELDS } from '../../../src/api/answer.ts';
import { decodeAnswers, encodeAnswers, type ForwardedAnswer } from '../../../src/wire/answers.ts';
import {
  clusterTag,
  encodeFrame,
  FRAME_HEADER_BYTES,
  FRAME_TYPES,
  FrameDecoder,
  FrameError,
  type FrameType,
} from '../../../src/wire/frame.ts';
import { decodePeerMessages, encodePeerMessages } from '../../../src/wire/peer-messages.ts';
import { decodeRequests, encodeRequests, type ForwardedRequest } from '../../../src/wire/requests.ts';
import { FROM, peerMessage, TO } from '../../wire/peer-messages.ts';
import { type Outcome, promiseSame, readOr, type Target } from '../target.ts';
import { batchedRequest, customerRecord, customerRequest, natural, shortText, userId } from './made.ts';

const TAG = clusterTag('fuzzed');
const PAYLOAD_BYTES_MAX = 4_096;
const TYPES = Object.keys(FRAME_TYPES) as FrameType[];

interface Seen {
  readonly frames: readonly { readonly type: FrameType; readonly payload: Buffer }[];
  readonly fault: string;
}

/** @param cut bytes at a time */
function framesIn(stream: Buffer, cut: number): Seen {
  const decoder = new FrameDecoder(TAG, PAYLOAD_BYTES_MAX);
  const frames: { type: FrameType; payload: Buffer }[] = [];
  const read = readOr([FrameError], () => {
    for (let at = 0; at < stream.length; at += cut) {
      const chunk = Buffer.from(stream.subarray(at, at + cut));
      decoder.push(chunk, ({ type, payload }) => frames.push({ type, payload: Buffer.from(payload) }));
    }
  });
  return { frames, fault: 'refused' in read ? read.refused : '' };
}

/** Corrects checksums, because otherwise they alone would detect all damage. */
function sealed(stream: Buffer): Buffer {
  for (let at = 0; at + FRAME_HEADER_BYTES <= stream.length;) {
    const payloadAt = at + FRAME_HEADER_BYTES;
    const end = payloadAt + stream.readUInt32BE(at + 12);
    if (end <= stream.length) stream.writeUInt32BE(crc32(stream.subarray(payloadAt, end)), at + 16);
    stream.writeUInt32BE(crc32(stream.subarray(at, at + 20)), at + 20);
    at = end;
  }
  return stream;
}

/** The first byte chooses how the rest is cut, and whether its checksums are corrected. */
function runFrames(input: Buffer): Outcome {
  const how = input[0] ?? 0;
  const stream = how < 0xc0 ? sealed(Buffer.from(input.subarray(1))) : input.subarray(1);
  const whole = framesIn(stream, stream.length + 1);
  promiseSame(framesIn(stream, 1 + (how & 0x3f)), whole, 'frames that are cut');
  return whole.fault === '' ? `read ${Math.min(3, whole.frames.length)}` : (whole.fault as Outcome);
}

const frame = fc
  .tuple(fc.constantFrom(...TYPES), fc.uint8Array({ maxLength: 60 }))
  .map(([type, payload]) => encodeFrame(type, payload, TAG));

function runPeerMessages(input: Buffer): Outcome {
  const read = readOr([FrameError], () => decodePeerMessages(input, FROM, TO));
  if ('refused' in read) return read.refused;
  const again = encodePeerMessages(read.value).flatMap((payload) => decodePeerMessages(payload, FROM, TO));
  promiseSame(again, read.value, 'messages again');
  return `read ${read.value[0]?.kind ?? ''}`;
}

const peek = fc.record({
  ask: fc.constant('peek' as const),
  userId,
  ruleId: fc.constantFrom(undefined, 'r'),
});
const forwarded: fc.Arbitrary<ForwardedRequest> = fc.record({
  id: natural,
  budgetMillis: natural,
  partition: fc.nat(3),
  relayTo: fc.constantFrom(0, 3),
  request: fc.oneof(peek, batchedRequest, customerRequest),
});

function runRequests(input: Buffer): Outcome {
  const read = readOr([FrameError], () => decodeRequests(input));
  if ('refused' in read) return read.refused;
  promiseSame(decodeRequests(encodeRequests(read.value)), read.value, 'requests again');
  return 'read';
}

const limit = fc.record({
  ruleId: fc.constantFrom('', 'a', 'b'),
  limit: natural,
  windowMillis: natural,
  remaining: natural,
  retryAfterMillis: natural,
  resetMillis: natural,
});
const decided = fc.record({ term: natural, index: natural, timeMillis: natural });
const limits = fc.array(limit, { maxLength: 4 });
const message = shortText(30);
const answer: fc.Arbitrary<ForwardedAnswer['answer']> = fc.oneof(
  fc.tuple(limit, fc.boolean(), limits, decided, fc.nat(2)).map(([first, allowed, more, receipt, wait]) => ({
    kind: 'decision' as const,
    decision: {
      ...first,
      allowed,
      decided: receipt,
      rulesVersion: receipt.index,
      ...(wait > 0 && { waitMillis: wait }),
      ...(more.length > 0 && { limits: more }),
    },
  })),
  fc.record({ kind: fc.constant('conflict' as const), field: fc.constantFrom(...CONFLICT_FIELDS), message }),
  fc.record({ kind: fc.constant('invalid' as const), field: message, message }),
  fc.record({
    kind: fc.constant('unavailable' as const),
    reason: fc.constantFrom(...UNAVAILABLE_REASONS),
    proposed: fc.boolean(),
  }),
  fc.record({ kind: fc.constant('notLeader' as const), leader: natural, term: natural }),
  fc.record({
    kind: fc.constant('refund' as const),
    refund: fc.record(
      {
        refunded: fc.boolean(),
        ruleId: fc.constantFrom('', 'a'),
        cost: natural,
        decided,
        rulesVersion: natural,
        attempt: fc.integer({ min: 1, max: Number.MAX_SAFE_INTEGER }),
      },
      { requiredKeys: ['refunded', 'ruleId', 'cost', 'decided', 'rulesVersion'] },
    ),
  }),
  fc.record({
    kind: fc.constant('keyStatus' as const),
    keyStatus: fc.record(
      { limits, decided, rulesVersion: natural, isBlocked: fc.constant(true as const) },
      { requiredKeys: ['limits', 'decided', 'rulesVersion'] },
    ),
  }),
  fc.record({
    kind: fc.constant('customer' as const),
    outcome: fc.record({ isDone: fc.boolean(), record: customerRecord, decided }),
  }),
);

function runAnswers(input: Buffer): Outcome {
  const read = readOr([FrameError], () => decodeAnswers(input));
  if ('refused' in read) return read.refused;
  promiseSame(decodeAnswers(encodeAnswers(read.value)), read.value, 'answers again');
  return `read ${read.value[0]?.answer.kind ?? ''}`;
}

const COMMON = { bytesMax: 8_192, bytesPerByteMax: 512 };

export const FRAMES: readonly Target[] = [
  {
    name: 'frames',
    parser: 'streams of frames, cut anywhere',
    sound: fc
      .tuple(fc.nat(0xbf), fc.array(frame, { maxLength: 4 }))
      .map(([how, frames]) => Buffer.concat([Buffer.of(how), ...frames])),
    ...COMMON,
    run: runFrames,
  },
  {
    name: 'raft-messages',
    parser: 'frames of Raft messages, snapshot chunks and beats',
    sound: fc.array(peerMessage, { minLength: 1, maxLength: 4 }).map((each) => encodePeerMessages(each)[0]!),
    ...COMMON,
    run: runPeerMessages,
  },
  {
    name: 'forwarded-requests',
    parser: 'frames of forwarded requests',
    sound: fc.array(forwarded, { maxLength: 5 }).map(encodeRequests),
    ...COMMON,
    run: runRequests,
  },
  {
    name: 'forwarded-answers',
    parser: 'frames of answers',
    sound: fc.array(fc.record({ id: natural, answer }), { maxLength: 5 }).map(encodeAnswers),
    ...COMMON,
    run: runAnswers,
  },
];
