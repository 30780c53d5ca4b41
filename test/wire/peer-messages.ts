/** Generators of random peer messages, with every kind and the whole range of every field. */
import fc from 'fast-check';
import { encodeConfig } from '../../raft/membership.ts';
import type { PeerMessage } from '../../raft/driver/peer-message.ts';
import type { Entry, Message, SnapshotMeta } from '../../raft/types.ts';

export const FROM = 2;
export const TO = 1;

/** Whole numbers >= 0, often where an encoding changes its width. */
const natural = fc.oneof(
  fc.maxSafeNat(),
  fc.constantFrom(
    0,
    0x3f,
    0x40,
    0x7f,
    0x80,
    0xff,
    0x100,
    0xffff,
    0x1_0000,
    2 ** 31,
    2 ** 32 - 1,
    2 ** 32,
    2 ** 53 - 1,
  ),
);
const bytes = fc.uint8Array({ maxLength: 40 });
const head = { from: fc.constant(FROM), to: fc.constant(TO), term: natural };

const nodes = fc.uniqueArray(fc.integer({ min: 1, max: 2 ** 40 }), { maxLength: 4 });
const config = fc.record({
  epoch: natural,
  voters: fc.uniqueArray(fc.integer({ min: 1, max: 9 }), { minLength: 1, maxLength: 5 }),
  outgoing: nodes,
  learners: fc.uniqueArray(fc.integer({ min: 10, max: 2 ** 40 }), { maxLength: 3 }),
});

/** Contiguous, with terms and times that do not decrease. */
const entries: fc.Arbitrary<Entry[]> = fc
  .array(
    fc.oneof(
      fc.record({
        term: natural,
        timeMillis: natural,
        kind: fc.constantFrom('command' as const, 'noop' as const),
        data: bytes,
      }),
      fc.record({
        term: natural,
        timeMillis: natural,
        kind: fc.constant('config' as const),
        data: config.map(encodeConfig),
      }),
    ),
    { maxLength: 4 },
  )
  .chain((parts) => {
    const terms = parts.map((part) => part.term).sort((a, b) => a - b);
    const times = parts.map((part) => part.timeMillis).sort((a, b) => a - b);
    return natural.map((first) => {
      const index = Math.min(first, Number.MAX_SAFE_INTEGER - parts.length);
      return parts.map((part, i) => ({
        ...part,
        index: index + i,
        term: terms[i] ?? 0,
        timeMillis: times[i] ?? 0,
      }));
    });
  });

const others = fc.array(natural, { minLength: 1, maxLength: 4 });

const meta: fc.Arbitrary<SnapshotMeta> = fc.record(
  {
    index: natural,
    term: natural,
    timeMillis: natural,
    epoch: natural.filter((epoch) => epoch > 0),
    voters: fc.array(natural, { maxLength: 4 }),
    outgoing: others,
    learners: others,
    checksum: natural,
    chunkCount: natural,
    byteLength: natural,
  },
  { requiredKeys: ['index', 'term', 'timeMillis', 'voters', 'chunkCount', 'byteLength'] },
);

/** All messages of cores; a snapshot is sent in chunks instead. */
const MESSAGES: { readonly [T in Exclude<Message['type'], 'snapshot'>]: fc.Arbitrary<Message> } = {
  preVote: vote('preVote'),
  vote: vote('vote'),
  preVoteResponse: voteResponse('preVoteResponse'),
  voteResponse: voteResponse('voteResponse'),
  append: fc.record({
    type: fc.constant('append'),
    ...head,
    prevIndex: natural,
    prevTerm: natural,
    commit: natural,
    timeMillis: natural,
    entries,
  }),
  appendResponse: fc.record({
    type: fc.constant('appendResponse'),
    ...head,
    rejected: fc.boolean(),
    index: natural,
    hintIndex: natural,
    hintTerm: natural,
  }),
  heartbeat: fc.record({
    type: fc.constant('heartbeat'),
    ...head,
    commit: natural,
    timeMillis: natural,
    readRound: natural,
    match: natural,
  }),
  heartbeatResponse: fc.record({
    type: fc.constant('heartbeatResponse'),
    ...head,
    readRound: natural,
    isReluctant: fc.boolean(),
  }),
  timeoutNow: fc.record({ type: fc.constant('timeoutNow'), ...head }),
};

function vote(type: 'preVote' | 'vote'): fc.Arbitrary<Message> {
  return fc.record({
    type: fc.constant(type),
    ...head,
    lastIndex: natural,
    lastTerm: natural,
    isTransfer: fc.boolean(),
  });
}

function voteResponse(type: 'preVoteResponse' | 'voteResponse'): fc.Arbitrary<Message> {
  const committed = fc.record({ index: natural.filter((index) => index > 0), term: natural });
  return fc.record(
    { type: fc.constant(type), ...head, granted: fc.boolean(), committed },
    { requiredKeys: ['type', 'from', 'to', 'term', 'granted'] },
  );
}

function inGroup(message: fc.Arbitrary<Message>): fc.Arbitrary<PeerMessage> {
  return fc.record({ kind: fc.constant('message'), group: natural, message });
}

/** Generators by name: for each type of message, and all other kinds. */
export const PEER_MESSAGES: Readonly<Record<string, fc.Arbitrary<PeerMessage>>> = {
  ...Object.fromEntries(Object.entries(MESSAGES).map(([type, message]) => [type, inGroup(message)])),
  chunk: fc.record({
    kind: fc.constant('chunk'),
    group: natural,
    from: fc.constant(FROM),
    term: natural,
    timeMillis: natural,
    meta,
    chunk: natural,
    data: bytes,
  }),
  chunkAck: fc.record({
    kind: fc.constant('chunkAck'),
    group: natural,
    from: fc.constant(FROM),
    index: natural,
    snapshotTerm: natural,
    held: natural,
  }),
  beat: fc.record(
    {
      kind: fc.constant('beat'),
      from: fc.constant(FROM),
      process: natural,
      version: natural,
      readingMillis: natural,
      groups: fc.array(fc.record({ group: natural, term: natural, index: natural, timeMillis: natural }), {
        maxLength: 4,
      }),
    },
    { requiredKeys: ['kind', 'from', 'process', 'version', 'readingMillis'] },
  ),
  beatAnswer: fc.record({
    kind: fc.constant('beatAnswer'),
    from: fc.constant(FROM),
    process: natural,
    version: natural,
    awake: fc.array(natural, { maxLength: 4 }),
  }),
};

export const peerMessage: fc.Arbitrary<PeerMessage> = fc.oneof(...Object.values(PEER_MESSAGES));
