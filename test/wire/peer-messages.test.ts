/** Tests the frame of peer messages: all fields are decoded, and malformed frames are refused. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { PeerMessage } from '../../raft/driver/peer-message.ts';
import { FRAME_PAYLOAD_BYTES_MAX, FrameError } from '../../src/wire/frame.ts';
import { decodePeerMessages, encodePeerMessages } from '../../src/wire/peer-messages.ts';
import { FROM, PEER_MESSAGES, peerMessage, TO } from './peer-messages.ts';
import { ROUNDS } from '../raft/seeded.ts';

const NAMES = Object.keys(PEER_MESSAGES);

function encodeOne(message: PeerMessage): Buffer {
  const [payload] = encodePeerMessages([message]);
  if (payload === undefined) throw new Error('one message makes one payload');
  return payload;
}

/** Byte strings compared by their contents: a Buffer equals a Uint8Array with the same bytes. */
function plain(value: unknown): unknown {
  if (value instanceof Uint8Array) return { hex: Buffer.from(value).toString('hex') };
  if (Array.isArray(value)) return value.map(plain);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([name, part]) => [name, plain(part)]));
}

/** The error that decoding throws, or undefined. */
function refusal(payload: Uint8Array, from = FROM, to = TO): unknown {
  try {
    decodePeerMessages(payload, from, to);
    return undefined;
  } catch (error) {
    return error;
  }
}

function samplesOf(name: string, count: number): PeerMessage[] {
  return fc.sample(PEER_MESSAGES[name] ?? peerMessage, { seed: 3, numRuns: count });
}

describe('messages between nodes', () => {
  it.each(NAMES)('are decoded with every field: %s', (name) => {
    fc.assert(
      fc.property(fc.array(PEER_MESSAGES[name] ?? peerMessage, { maxLength: 4 }), (messages) => {
        const decoded = encodePeerMessages(messages).flatMap((payload) =>
          decodePeerMessages(payload, FROM, TO),
        );
        expect(plain(decoded)).toEqual(plain(messages));
      }),
      { seed: 4, numRuns: 100 },
    );
  });

  it('of one turn keep their order across groups and kinds', () => {
    const messages = fc.sample(peerMessage, { seed: 5, numRuns: 200 });
    const [payload = Buffer.alloc(0), ...more] = encodePeerMessages(messages);
    expect(more).toEqual([]);
    expect(plain(decodePeerMessages(payload, FROM, TO))).toEqual(plain(messages));
  });

  it('have no payload when there are none', () => {
    expect(encodePeerMessages([])).toEqual([]);
  });

  it('do not alias the buffer they were received in', () => {
    const [append] = samplesOf('append', 50).filter(
      (m) =>
        m.kind === 'message' &&
        m.message.type === 'append' &&
        m.message.entries.some((e) => e.data.length > 8),
    );
    const [chunk] = samplesOf('chunk', 50).filter((m) => m.kind === 'chunk' && m.data.length > 8);
    const messages = [append, chunk].filter((message) => message !== undefined);
    expect(messages).toHaveLength(2);
    const [payload = Buffer.alloc(0)] = encodePeerMessages(messages);
    const receiveBuffer = Buffer.concat([Buffer.alloc(100, 1), payload, Buffer.alloc(100, 1)]);
    const decoded = decodePeerMessages(receiveBuffer.subarray(100, 100 + payload.length), FROM, TO);
    receiveBuffer.fill(0xee);
    expect(plain(decoded)).toEqual(plain(messages));
  });
});

describe('one large turn', () => {
  it('becomes several payloads, each far below the bound of a frame', () => {
    const [sample] = samplesOf('chunk', 1);
    if (sample?.kind !== 'chunk') throw new Error('a chunk was sampled');
    const data = new Uint8Array(256 << 10).fill(7);
    const messages = Array.from({ length: 100 }, (_, i): PeerMessage => ({ ...sample, chunk: i, data }));
    const payloads = encodePeerMessages(messages);
    expect(payloads.length).toBeGreaterThan(2);
    expect(Math.max(...payloads.map((payload) => payload.length))).toBeLessThan(FRAME_PAYLOAD_BYTES_MAX / 2);
    const chunks = payloads
      .flatMap((payload) => decodePeerMessages(payload, FROM, TO))
      .map((m) => m.kind === 'chunk' && m.chunk);
    expect(chunks).toEqual(messages.map((_, i) => i));
  });

  it('of small messages and of wide numbers is split as well', () => {
    const widest: PeerMessage = {
      kind: 'message',
      group: Number.MAX_SAFE_INTEGER,
      message: {
        type: 'append',
        from: FROM,
        to: TO,
        term: Number.MAX_SAFE_INTEGER,
        prevIndex: Number.MAX_SAFE_INTEGER,
        prevTerm: Number.MAX_SAFE_INTEGER,
        commit: Number.MAX_SAFE_INTEGER,
        timeMillis: Number.MAX_SAFE_INTEGER,
        entries: [],
      },
    };
    const payloads = encodePeerMessages(Array.from({ length: 250_000 }, () => widest));
    expect(payloads.length).toBeGreaterThan(1);
    expect(Math.max(...payloads.map((payload) => payload.length))).toBeLessThan(FRAME_PAYLOAD_BYTES_MAX / 2);
  });
});

describe('a message that names other nodes', () => {
  it.each(NAMES)('is refused: %s', (name) => {
    for (const message of samplesOf(name, 5)) {
      const payload = encodeOne(message);
      expect(refusal(payload)).toBeUndefined();
      expect(refusal(payload, FROM + 1)).toBeInstanceOf(FrameError);
      // Chunks and their acknowledgements do not name their receiver.
      const isAddressed = message.kind === 'message';
      expect(refusal(payload, FROM, TO + 1) instanceof FrameError).toBe(isAddressed);
    }
  });

  it('makes the whole payload be refused', () => {
    const [honest] = samplesOf('heartbeat', 1);
    if (honest?.kind !== 'message') throw new Error('a heartbeat was sampled');
    const forged: PeerMessage = { ...honest, message: { ...honest.message, from: FROM + 1 } };
    const [payload = Buffer.alloc(0)] = encodePeerMessages([honest, forged]);
    expect(refusal(payload)).toMatchObject({
      code: 'FRAME',
      message: `a message from ${FROM + 1} to ${TO} came from ${FROM} to ${TO}`,
    });
  });
});

/** A payload of these integers, each in one byte if it is below 128. */
const bytes = (...values: readonly number[]): Buffer => Buffer.from(values);
const ENDLESS = Array.from({ length: 9 }, () => 0x80);
/** 2^53 and more. */
const TOO_LARGE = [0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x10];
const APPEND = [0, 1, 4, FROM, TO, 1, 0, 0, 0, 0];

describe('the decoder', () => {
  it.each(NAMES)('refuses a message that ends too early, or goes on: %s', (name) => {
    for (const message of samplesOf(name, 8)) {
      const payload = encodeOne(message);
      for (let length = 0; length < payload.length; length += 1) {
        expect(refusal(payload.subarray(0, length))).toBeInstanceOf(FrameError);
      }
      expect(refusal(Buffer.concat([payload, bytes(0)]))).toBeInstanceOf(FrameError);
    }
  });

  it.each([
    ['nothing', bytes()],
    ['an unknown kind', bytes(3, 1)],
    ['an unknown type', bytes(0, 1, 99, FROM, TO, 1)],
    ['a snapshot as a message', bytes(0, 1, 8, FROM, TO, 1)],
    ['a group without an end', bytes(0, ...ENDLESS)],
    ['a group id above the largest integer', bytes(0, ...TOO_LARGE)],
    ['a flag of neither 0 nor 1', bytes(0, 1, 3, FROM, TO, 1, 2, 0, 0)],
    ['entries said to be 2^48', bytes(...APPEND, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x40)],
    ['an entry of an unknown kind', bytes(...APPEND, 1, 1, 1, 1, 3, 0)],
    [
      'data said to hold 2^48 bytes',
      bytes(...APPEND, 1, 1, 1, 1, 0, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x40),
    ],
    ['an invalid configuration', bytes(...APPEND, 1, 1, 1, 1, 2, 1, 0xc1)],
    ['entries with a gap', bytes(...APPEND, 2, 1, 1, 1, 0, 0, 3, 1, 1, 0, 0)],
    ['entries of falling terms', bytes(...APPEND, 2, 1, 2, 1, 0, 0, 2, 1, 1, 0, 0)],
    ['entries of falling times', bytes(...APPEND, 2, 1, 1, 2, 0, 0, 2, 1, 1, 0, 0)],
    ['two checksums', bytes(1, 1, FROM, 1, 1, 1, 1, 1, 1, 1, 1, 1, 0, 0, 2, 1, 1, 0, 0, 0)],
  ])('refuses %s', (_what, payload) => {
    expect(refusal(payload)).toBeInstanceOf(FrameError);
  });

  it('reads values at their bounds', () => {
    expect(refusal(bytes(...APPEND, 0))).toBeUndefined();
    expect(refusal(bytes(...APPEND, 2, 1, 1, 1, 0, 0, 2, 1, 1, 0, 0))).toBeUndefined();
    expect(refusal(bytes(0, 1, 3, FROM, TO, 1, 1, 0, 0))).toBeUndefined();
    expect(refusal(bytes(1, 1, FROM, 1, 1, 1, 1, 1, 1, 1, 1, 1, 0, 0, 1, 1, 0, 0, 0))).toBeUndefined();
  });

  it('is not affected by an encoder that threw', () => {
    const [heartbeat] = samplesOf('heartbeat', 1);
    if (heartbeat?.kind !== 'message') throw new Error('a heartbeat was sampled');
    const meta = { index: 1, term: 1, timeMillis: 1, voters: [1], chunkCount: 1, byteLength: 1 };
    const snapshot = { type: 'snapshot', from: FROM, to: TO, term: 1, meta, timeMillis: 1 } as const;
    const unsendable: PeerMessage = { kind: 'message', group: 1, message: snapshot };
    expect(() => encodePeerMessages([heartbeat, unsendable])).toThrow(TypeError);
    expect(plain(decodePeerMessages(encodeOne(heartbeat), FROM, TO))).toEqual(plain([heartbeat]));
  });

  it('throws only FrameError, for any bytes', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 60 }), (payload) => {
        const error = refusal(payload);
        expect(error === undefined || error instanceof FrameError).toBe(true);
      }),
      { seed: 6, numRuns: 1_500 * ROUNDS },
    );
  });

  it('throws only FrameError for almost valid bytes', () => {
    const edit = fc.tuple(fc.nat(), fc.nat(255));
    fc.assert(
      fc.property(peerMessage, fc.array(edit, { minLength: 1, maxLength: 4 }), (message, edits) => {
        const payload = encodeOne(message);
        for (const [at, byte] of edits) payload.writeUInt8(byte, at % payload.length);
        const error = refusal(payload);
        expect(error === undefined || error instanceof FrameError).toBe(true);
      }),
      { seed: 8, numRuns: 1_500 * ROUNDS },
    );
  });
});
