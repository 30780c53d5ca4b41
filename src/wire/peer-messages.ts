/**
 * The frame with everything that the Raft groups of two nodes send to each other in one event loop turn. Messages
 * follow each other, each with its kind, its group if it has one, and its fields.
 */
import { decodeConfig } from '../../raft/membership.ts';
import type { PeerMessage, SnapshotChunk, SnapshotChunkAck } from '../../raft/driver/peer-message.ts';
import type { Entry, EntryKind, Message, NodeId, SnapshotMeta, VoteResponse } from '../../raft/types.ts';
import { decodeBeat, decodeBeatAnswer, encodeBeat, encodeBeatAnswer } from './beats.ts';
import type { ByteReader } from '../bytes/byte-reader.ts';
import { ByteWriter } from '../bytes/byte-writer.ts';
import { payloadReader, takePayload } from './payload.ts';
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
const KINDS = [
  'message',
  'chunk',
  'chunkAck',
  'beat',
  'beatAnswer',
] as const satisfies readonly PeerMessage['kind'][];

/**
 * A payload is closed when it reaches this size, so that no frame comes near the limit, however much one turn
 * sends.
 */
const PAYLOAD_BYTES_AIM = 8 << 20;
const NO_NUMBERS: readonly number[] = [];
const out = new ByteWriter();

/** Encodes the messages of one turn for one peer, in as few payloads as possible. */
export function encodePeerMessages(messages: readonly PeerMessage[]): Buffer[] {
  const payloads: Buffer[] = [];
  out.clear();
  for (const message of messages) {
    encodeOne(message);
    if (out.length >= PAYLOAD_BYTES_AIM) payloads.push(takePayload(out));
  }
  if (out.length > 0) payloads.push(takePayload(out));
  return payloads;
}

function encodeOne(message: PeerMessage): void {
  out.integer(KINDS.indexOf(message.kind));
  if ('group' in message) out.integer(message.group);
  switch (message.kind) {
    case 'message':
      encodeMessage(message.message);
      return;
    case 'chunk':
      out.integer(message.from);
      out.integer(message.term);
      out.integer(message.timeMillis);
      encodeMeta(message.meta);
      out.integer(message.chunk);
      out.byteString(message.data);
      return;
    case 'chunkAck':
      out.integer(message.from);
      out.integer(message.index);
      out.integer(message.snapshotTerm);
      out.integer(message.held);
      return;
    case 'beat':
      encodeBeat(out, message);
      return;
    case 'beatAnswer':
      encodeBeatAnswer(out, message);
  }
}

function encodeMessage(message: Message): void {
  out.integer(MESSAGE_TYPES.indexOf(message.type));
  out.integer(message.from);
  out.integer(message.to);
  out.integer(message.term);
  switch (message.type) {
    case 'preVote':
    case 'vote':
      out.integer(message.lastIndex);
      out.integer(message.lastTerm);
      out.flag(message.isTransfer);
      return;
    case 'preVoteResponse':
    case 'voteResponse':
      out.flag(message.granted);
      out.integer(message.committed?.index ?? 0);
      out.integer(message.committed?.term ?? 0);
      return;
    case 'append':
      out.integer(message.prevIndex);
      out.integer(message.prevTerm);
      out.integer(message.commit);
      out.integer(message.timeMillis);
      out.integer(message.entries.length);
      for (const entry of message.entries) encodeEntry(entry);
      return;
    case 'appendResponse':
      out.flag(message.rejected);
      out.integer(message.index);
      out.integer(message.hintIndex);
      out.integer(message.hintTerm);
      return;
    case 'heartbeat':
      out.integer(message.commit);
      out.integer(message.timeMillis);
      out.integer(message.readRound);
      out.integer(message.match);
      return;
    case 'heartbeatResponse':
      out.integer(message.readRound);
      out.flag(message.isReluctant);
      return;
    case 'timeoutNow':
      return;
    case 'snapshot':
      throw new TypeError('a snapshot travels in chunks, not as a message');
  }
}

function encodeEntry({ index, term, timeMillis, kind, data }: Entry): void {
  out.integer(index);
  out.integer(term);
  out.integer(timeMillis);
  out.integer(ENTRY_KINDS.indexOf(kind));
  out.byteString(data);
}

function encodeMeta(meta: SnapshotMeta): void {
  out.integer(meta.index);
  out.integer(meta.term);
  out.integer(meta.timeMillis);
  out.integers(meta.voters);
  out.integer(meta.chunkCount);
  out.integer(meta.byteLength);
  out.integers(meta.outgoing ?? NO_NUMBERS);
  out.integers(meta.learners ?? NO_NUMBERS);
  out.integers(meta.checksum === undefined ? NO_NUMBERS : [meta.checksum]);
  out.integer(meta.epoch ?? 0);
}

/**
 * Decodes messages from node `from` to node `to`. @throws FrameError if the frame is malformed or claims another
 * sender or receiver
 */
export function decodePeerMessages(payload: Uint8Array, from: NodeId, to: NodeId): PeerMessage[] {
  const input = payloadReader(payload);
  const messages: PeerMessage[] = [];
  do {
    const message = decodeOne(input);
    const envelope = message.kind === 'message' ? message.message : message;
    const receiver = message.kind === 'message' ? message.message.to : to;
    if (envelope.from !== from || receiver !== to) {
      throw new FrameError(`a message from ${envelope.from} to ${receiver} came from ${from} to ${to}`);
    }
    messages.push(message);
  } while (!input.isAtEnd);
  return messages;
}

function decodeOne(input: ByteReader): PeerMessage {
  const kind = input.oneOf(KINDS, 'kind');
  if (kind === 'beat') return decodeBeat(input);
  if (kind === 'beatAnswer') return decodeBeatAnswer(input);
  const group = input.integer('group');
  switch (kind) {
    case 'message':
      return { kind, group, message: decodeMessage(input) };
    case 'chunk': {
      const chunk: SnapshotChunk = {
        kind,
        group,
        from: input.integer('from'),
        term: input.integer('term'),
        timeMillis: input.integer('timeMillis'),
        meta: decodeMeta(input),
        chunk: input.integer('chunk'),
        data: input.byteString('data'),
      };
      return chunk;
    }
    case 'chunkAck': {
      const ack: SnapshotChunkAck = {
        kind,
        group,
        from: input.integer('from'),
        index: input.integer('index'),
        snapshotTerm: input.integer('snapshotTerm'),
        held: input.integer('held'),
      };
      return ack;
    }
  }
}

function decodeMessage(input: ByteReader): Message {
  const type = input.oneOf(MESSAGE_TYPES, 'type');
  const from = input.integer('from');
  const to = input.integer('to');
  const term = input.integer('term');
  switch (type) {
    case 'preVote':
    case 'vote': {
      const lastIndex = input.integer('lastIndex');
      const lastTerm = input.integer('lastTerm');
      return { type, from, to, term, lastIndex, lastTerm, isTransfer: input.flag('isTransfer') };
    }
    case 'preVoteResponse':
    case 'voteResponse':
      return { type, from, to, term, granted: input.flag('granted'), ...decodeCommitted(input) };
    case 'append': {
      const prevIndex = input.integer('prevIndex');
      const prevTerm = input.integer('prevTerm');
      const commit = input.integer('commit');
      const timeMillis = input.integer('timeMillis');
      const entries = decodeEntries(input);
      return { type, from, to, term, prevIndex, prevTerm, commit, timeMillis, entries };
    }
    case 'appendResponse': {
      const rejected = input.flag('rejected');
      const index = input.integer('index');
      const hintIndex = input.integer('hintIndex');
      return { type, from, to, term, rejected, index, hintIndex, hintTerm: input.integer('hintTerm') };
    }
    case 'heartbeat': {
      const commit = input.integer('commit');
      const timeMillis = input.integer('timeMillis');
      const readRound = input.integer('readRound');
      return { type, from, to, term, commit, timeMillis, readRound, match: input.integer('match') };
    }
    case 'heartbeatResponse': {
      const readRound = input.integer('readRound');
      return { type, from, to, term, readRound, isReluctant: input.flag('isReluctant') };
    }
    case 'timeoutNow':
      return { type, from, to, term };
    case 'snapshot':
      throw new FrameError('a snapshot travels in chunks, not as a message');
  }
}

function decodeCommitted(input: ByteReader): Pick<VoteResponse, 'committed'> {
  const index = input.integer('committed index');
  const term = input.integer('committed term');
  return index === 0 ? {} : { committed: { index, term } };
}

/**
 * Reads entries. They must be contiguous, with terms and times that never decrease, as the Raft core relies on it.
 */
function decodeEntries(input: ByteReader): Entry[] {
  const entries: Entry[] = [];
  const count = input.count('entries');
  for (let i = 0; i < count; i += 1) {
    const entry = decodeEntry(input);
    const before = entries[i - 1];
    entries.push(entry);
    if (before === undefined) continue;
    const follows =
      entry.index === before.index + 1 && entry.term >= before.term && entry.timeMillis >= before.timeMillis;
    if (!follows) throw new FrameError(`entry ${entry.index} does not follow entry ${before.index}`);
  }
  return entries;
}

function decodeEntry(input: ByteReader): Entry {
  const entry: Entry = {
    index: input.integer('index'),
    term: input.integer('term'),
    timeMillis: input.integer('timeMillis'),
    kind: input.oneOf(ENTRY_KINDS, 'kind'),
    data: input.byteString('data'),
  };
  // Refuse an invalid configuration: once committed, it would stop every replica.
  if (entry.kind === 'config' && decodeConfig(entry.data) === undefined) {
    throw new FrameError(`entry ${entry.index} holds an invalid configuration`);
  }
  return entry;
}

function decodeMeta(input: ByteReader): SnapshotMeta {
  const meta: SnapshotMeta = {
    index: input.integer('index'),
    term: input.integer('term'),
    timeMillis: input.integer('timeMillis'),
    voters: input.integers('voters'),
    chunkCount: input.integer('chunkCount'),
    byteLength: input.integer('byteLength'),
  };
  const outgoing = input.integers('outgoing');
  const learners = input.integers('learners');
  const [checksum, ...rest] = input.integers('checksum');
  if (rest.length > 0) throw new FrameError('a snapshot has one checksum');
  const epoch = input.integer('epoch');
  return {
    ...meta,
    ...(epoch > 0 && { epoch }),
    ...(outgoing.length > 0 && { outgoing }),
    ...(learners.length > 0 && { learners }),
    ...(checksum !== undefined && { checksum }),
  };
}
