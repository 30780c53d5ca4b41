/** The frame of what the Raft groups of two nodes say to each other in one turn. */
import { decodeConfig } from '../../raft/membership.ts';
import type { PeerMessage, SnapshotChunk, SnapshotChunkAck } from '../../raft/driver/peer-message.ts';
import type {
  Entry,
  EntryKind,
  Heartbeat,
  HeartbeatResponse,
  Message,
  NodeId,
  SnapshotMeta,
  VoteResponse,
} from '../../raft/types.ts';
import { array, Fields, pack, unpack } from './fields.ts';
import { FrameError } from './frame.ts';

const MESSAGE_TYPES = [
  'preVote',
  'vote',
  'preVoteResponse',
  'voteResponse',
  'append',
  'appendResponse',
  'heartbeat',
  'heartbeatResponse',
  'snapshot',
  'timeoutNow',
] as const satisfies readonly Message['type'][];
const ENTRY_KINDS = ['command', 'noop', 'config'] as const satisfies readonly EntryKind[];
const KINDS = ['message', 'chunk', 'chunkAck'] as const satisfies readonly PeerMessage['kind'][];

/** Payloads stay near this size, so that no frame comes close to the bound however much one turn sends. */
const PAYLOAD_BYTES_AIM = 8 << 20;

/** One turn's messages for one peer, in as few payloads as fit. */
export function encodePeerMessages(messages: readonly PeerMessage[]): Buffer[] {
  const payloads: Buffer[] = [];
  let batch: unknown[] = [];
  let bytes = 0;
  for (const message of messages) {
    batch.push(encodeOne(message));
    bytes += dataBytes(message);
    if (bytes < PAYLOAD_BYTES_AIM) continue;
    payloads.push(pack(batch));
    batch = [];
    bytes = 0;
  }
  if (batch.length > 0) payloads.push(pack(batch));
  return payloads;
}

function dataBytes(message: PeerMessage): number {
  if (message.kind === 'chunk') return message.data.byteLength;
  if (message.kind === 'chunkAck' || message.message.type !== 'append') return 64;
  let bytes = 64;
  for (const entry of message.message.entries) bytes += entry.data.byteLength + 32;
  return bytes;
}

function encodeOne(message: PeerMessage): unknown[] {
  const head = [KINDS.indexOf(message.kind), message.group];
  switch (message.kind) {
    case 'message':
      return [...head, ...encodeMessage(message.message)];
    case 'chunk': {
      const { from, term, timeMillis, meta, chunk, data } = message;
      return [...head, from, term, timeMillis, encodeMeta(meta), chunk, data];
    }
    case 'chunkAck':
      return [...head, message.from, message.index, message.snapshotTerm, message.held];
  }
}

function encodeMessage(message: Message): unknown[] {
  const head = [MESSAGE_TYPES.indexOf(message.type), message.from, message.to, message.term];
  switch (message.type) {
    case 'preVote':
    case 'vote':
      return [...head, message.lastIndex, message.lastTerm, message.isTransfer];
    case 'preVoteResponse':
    case 'voteResponse':
      return [...head, message.granted, message.committed?.index ?? 0, message.committed?.term ?? 0];
    case 'append':
      return [
        ...head,
        message.prevIndex,
        message.prevTerm,
        message.commit,
        message.timeMillis,
        message.entries.map((e) => [e.index, e.term, e.timeMillis, ENTRY_KINDS.indexOf(e.kind), e.data]),
      ];
    case 'appendResponse':
      return [...head, message.rejected, message.index, message.hintIndex, message.hintTerm];
    case 'heartbeat':
      return [...head, message.commit, message.timeMillis, message.readRound ?? 0, message.match ?? 0];
    case 'heartbeatResponse':
      return [...head, message.readRound ?? 0, message.isReluctant === true];
    case 'timeoutNow':
      return head;
    case 'snapshot':
      throw new TypeError('a snapshot travels in chunks, not as a message');
  }
}

function encodeMeta(meta: SnapshotMeta): unknown[] {
  const { index, term, timeMillis, voters, chunkCount, byteLength } = meta;
  const { epoch = 0, outgoing = [], learners = [] } = meta;
  const checksum = meta.checksum === undefined ? [] : [meta.checksum];
  return [index, term, timeMillis, voters, chunkCount, byteLength, outgoing, learners, checksum, epoch];
}

/** Messages of node `from` for node `to`; anything that claims to be between others is refused. */
export function decodePeerMessages(payload: Uint8Array, from: NodeId, to: NodeId): PeerMessage[] {
  return array(unpack(payload), 'messages').map((value) => {
    const message = decodeOne(new Fields(value));
    const envelope = message.kind === 'message' ? message.message : { ...message, to };
    if (envelope.from !== from || envelope.to !== to) {
      throw new FrameError(`a message from ${envelope.from} to ${envelope.to} came from ${from} to ${to}`);
    }
    return message;
  });
}

function decodeOne(fields: Fields): PeerMessage {
  const kind = fields.oneOf(KINDS, 'kind');
  const group = fields.integer('group');
  switch (kind) {
    case 'message':
      return { kind, group, message: decodeMessage(fields) };
    case 'chunk': {
      const chunk: SnapshotChunk = {
        kind,
        group,
        from: fields.integer('from'),
        term: fields.integer('term'),
        timeMillis: fields.integer('timeMillis'),
        meta: decodeMeta(new Fields(fields.next('meta'))),
        chunk: fields.integer('chunk'),
        data: fields.bytes('data'),
      };
      return chunk;
    }
    case 'chunkAck': {
      const ack: SnapshotChunkAck = {
        kind,
        group,
        from: fields.integer('from'),
        index: fields.integer('index'),
        snapshotTerm: fields.integer('snapshotTerm'),
        held: fields.integer('held'),
      };
      return ack;
    }
  }
}

function decodeMessage(fields: Fields): Message {
  const type = fields.oneOf(MESSAGE_TYPES, 'type');
  const head = { from: fields.integer('from'), to: fields.integer('to'), term: fields.integer('term') };
  switch (type) {
    case 'preVote':
    case 'vote':
      return {
        type,
        ...head,
        lastIndex: fields.integer('lastIndex'),
        lastTerm: fields.integer('lastTerm'),
        isTransfer: fields.boolean('isTransfer'),
      };
    case 'preVoteResponse':
    case 'voteResponse':
      return { type, ...head, granted: fields.boolean('granted'), ...decodeCommitted(fields) };
    case 'append':
      return {
        type,
        ...head,
        prevIndex: fields.integer('prevIndex'),
        prevTerm: fields.integer('prevTerm'),
        commit: fields.integer('commit'),
        timeMillis: fields.integer('timeMillis'),
        entries: decodeEntries(fields),
      };
    case 'appendResponse':
      return {
        type,
        ...head,
        rejected: fields.boolean('rejected'),
        index: fields.integer('index'),
        hintIndex: fields.integer('hintIndex'),
        hintTerm: fields.integer('hintTerm'),
      };
    case 'heartbeat':
      return {
        type,
        ...head,
        commit: fields.integer('commit'),
        timeMillis: fields.integer('timeMillis'),
        ...decodeReadRound(fields),
        ...decodeMatch(fields),
      };
    case 'heartbeatResponse':
      return { type, ...head, ...decodeReadRound(fields), ...decodeReluctance(fields) };
    case 'timeoutNow':
      return { type, ...head };
    case 'snapshot':
      throw new FrameError('a snapshot travels in chunks, not as a message');
  }
}

function decodeReadRound(fields: Fields): Pick<Heartbeat, 'readRound'> {
  const readRound = fields.integer('readRound');
  return readRound === 0 ? {} : { readRound };
}

function decodeReluctance(fields: Fields): Pick<HeartbeatResponse, 'isReluctant'> {
  return fields.boolean('isReluctant') ? { isReluctant: true } : {};
}

function decodeMatch(fields: Fields): Pick<Heartbeat, 'match'> {
  const match = fields.integer('match');
  return match === 0 ? {} : { match };
}

function decodeCommitted(fields: Fields): Pick<VoteResponse, 'committed'> {
  const index = fields.integer('committed index');
  const term = fields.integer('committed term');
  return index === 0 ? {} : { committed: { index, term } };
}

/** Contiguous, with terms and times that do not decrease: the core relies on it. */
function decodeEntries(fields: Fields): Entry[] {
  const entries = array(fields.next('entries'), 'entries').map((value) => decodeEntry(new Fields(value)));
  for (const [i, entry] of entries.entries()) {
    const before = entries[i - 1];
    if (before === undefined) continue;
    const follows =
      entry.index === before.index + 1 && entry.term >= before.term && entry.timeMillis >= before.timeMillis;
    if (!follows) throw new FrameError(`entry ${entry.index} does not follow entry ${before.index}`);
  }
  return entries;
}

function decodeEntry(fields: Fields): Entry {
  const entry: Entry = {
    index: fields.integer('index'),
    term: fields.integer('term'),
    timeMillis: fields.integer('timeMillis'),
    kind: fields.oneOf(ENTRY_KINDS, 'kind'),
    data: fields.bytes('data'),
  };
  // Once it is committed, every replica would have to stop at it.
  if (entry.kind === 'config' && decodeConfig(entry.data) === undefined) {
    throw new FrameError(`entry ${entry.index} holds no sound configuration`);
  }
  return entry;
}

function decodeMeta(fields: Fields): SnapshotMeta {
  const meta: SnapshotMeta = {
    index: fields.integer('index'),
    term: fields.integer('term'),
    timeMillis: fields.integer('timeMillis'),
    voters: fields.integers('voters'),
    chunkCount: fields.integer('chunkCount'),
    byteLength: fields.integer('byteLength'),
  };
  const outgoing = fields.integers('outgoing');
  const learners = fields.integers('learners');
  const [checksum, ...rest] = fields.integers('checksum');
  if (rest.length > 0) throw new FrameError('a snapshot has one checksum');
  const epoch = fields.integer('epoch');
  return {
    ...meta,
    ...(epoch > 0 && { epoch }),
    ...(outgoing.length > 0 && { outgoing }),
    ...(learners.length > 0 && { learners }),
    ...(checksum !== undefined && { checksum }),
  };
}
