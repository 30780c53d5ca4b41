import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { PeerMessage } from '../../raft/driver/peer-message.ts';
import { FRAME_PAYLOAD_BYTES_MAX, FrameError } from '../../src/wire/frame.ts';
import { pack, unpack } from '../../src/wire/fields.ts';
import { decodePeerMessages, encodePeerMessages } from '../../src/wire/peer-messages.ts';
import { FROM, PEER_MESSAGES, peerMessage, TO } from './peer-messages.ts';

const NAMES = Object.keys(PEER_MESSAGES);

function encodeOne(message: PeerMessage): Buffer {
  const [payload] = encodePeerMessages([message]);
  if (payload === undefined) throw new Error('one message makes one payload');
  return payload;
}

/** Byte strings compared by what they hold: a Buffer is as good as a Uint8Array. */
function plain(value: unknown): unknown {
  if (value instanceof Uint8Array) return { hex: Buffer.from(value).toString('hex') };
  if (Array.isArray(value)) return value.map(plain);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([name, part]) => [name, plain(part)]));
}

/** What decoding throws, or undefined. */
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
  it.each(NAMES)('survive the trip with every field: %s', (name) => {
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

  it('are no payload when there are none', () => {
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
    const payloads = encodePeerMessages(Array.from({ length: 150_000 }, () => widest));
    expect(payloads.length).toBeGreaterThan(1);
    expect(Math.max(...payloads.map((payload) => payload.length))).toBeLessThan(FRAME_PAYLOAD_BYTES_MAX / 2);
  });
});

describe('a message that claims to be between others', () => {
  it.each(NAMES)('is refused: %s', (name) => {
    for (const message of samplesOf(name, 5)) {
      const payload = encodeOne(message);
      expect(refusal(payload)).toBeUndefined();
      expect(refusal(payload, FROM + 1)).toBeInstanceOf(FrameError);
      // Chunks and their acknowledgements do not say whom they are for.
      const isAddressed = message.kind === 'message';
      expect(refusal(payload, FROM, TO + 1) instanceof FrameError).toBe(isAddressed);
    }
  });

  it('takes the others of its payload with it', () => {
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

type Row = readonly unknown[];

/** Every value of a row, with its place; lists of rows and rows in rows are entered. */
function* places(
  row: Row,
  path: readonly number[] = [],
): Generator<{ path: readonly number[]; value: unknown }> {
  for (const [i, value] of row.entries()) {
    yield { path: [...path, i], value };
    if (Array.isArray(value)) yield* places(value, [...path, i]);
  }
}

function replaced(row: Row, [at, ...rest]: readonly number[], value: unknown): unknown[] {
  return row.map((old, i) => {
    if (i !== at) return old;
    return rest.length === 0 ? value : replaced(Array.isArray(old) ? old : [], rest, value);
  });
}

function wrongFor(value: unknown): unknown[] {
  const other = [null, undefined, 'text', '1', {}, new Date(0), Number.NaN, -1, 0.5, 2 ** 53, -(2n ** 60n)];
  if (typeof value === 'number') return [...other, true, [], [1], Uint8Array.of(1)];
  if (typeof value === 'boolean') return [...other, 0, 1, [], Uint8Array.of(1)];
  if (value instanceof Uint8Array) return [...other, true, 1, [], [1]];
  return [...other, true, 1, Uint8Array.of(1)];
}

describe('the decoder', () => {
  it.each(NAMES)('refuses a wrong type in any place: %s', (name) => {
    for (const message of samplesOf(name, 8)) {
      const [row] = unpack(encodeOne(message)) as [Row];
      for (const { path, value } of places(row)) {
        for (const wrong of wrongFor(value)) {
          const error = refusal(pack([replaced(row, path, wrong)]));
          expect({ path, wrong, refused: error instanceof FrameError }).toEqual({
            path,
            wrong,
            refused: true,
          });
        }
      }
    }
  });

  it.each(NAMES)('refuses a row that ends too early: %s', (name) => {
    for (const message of samplesOf(name, 8)) {
      const [row] = unpack(encodeOne(message)) as [Row];
      for (let length = 0; length < row.length; length += 1) {
        expect(refusal(pack([row.slice(0, length)]))).toBeInstanceOf(FrameError);
      }
      // Rows in the row: entries and snapshot descriptions, all with a fixed number of values.
      for (const { path, value } of places(row)) {
        if (!Array.isArray(value) || !isRow(value)) continue;
        for (let length = 0; length < value.length; length += 1) {
          expect(refusal(pack([replaced(row, path, value.slice(0, length))]))).toBeInstanceOf(FrameError);
        }
      }
    }
  });

  it.each([
    ['nothing', Buffer.alloc(0)],
    ['no array', pack({ messages: [] })],
    ['no rows', pack([1, 2])],
    ['two values', Buffer.concat([pack([]), pack([])])],
    ['a kind that is none', pack([[3, 0]])],
    ['a type that is none', pack([[0, 0, 99, FROM, TO, 1]])],
    ['an array said to hold 2^25 items', Buffer.from('dd02000000', 'hex')],
    ['an array said to hold 2^32 - 1 items', Buffer.from('ddffffffff', 'hex')],
    [
      'many such arrays in each other',
      Buffer.concat(Array.from({ length: 999 }, () => Buffer.from('dd00ffffff', 'hex'))),
    ],
    ['a byte string said to hold 2^32 - 1 bytes', Buffer.from('91c6ffffffff', 'hex')],
    ['text said to hold 2^32 - 1 bytes', Buffer.from('91dbffffffff', 'hex')],
    ['a million arrays in each other', Buffer.alloc(1_000_000, 0x91)],
    ['an extension nobody knows', Buffer.from('91c70441deadbeef', 'hex')],
  ])('refuses %s', (_what, payload) => {
    expect(refusal(payload)).toBeInstanceOf(FrameError);
  });

  it('throws nothing but FrameError, whatever bytes it gets', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 60 }), (payload) => {
        const error = refusal(payload);
        expect(error === undefined || error instanceof FrameError).toBe(true);
      }),
      { seed: 6, numRuns: 3_000 },
    );
  });

  it('throws nothing but FrameError, whatever MessagePack it gets', () => {
    const value = fc.oneof(
      fc.anything({ withDate: true, withTypedArray: true, maxDepth: 4 }),
      fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n }),
    );
    fc.assert(
      fc.property(fc.array(fc.array(value)), (rows) => {
        const error = refusal(pack(rows));
        expect(error === undefined || error instanceof FrameError).toBe(true);
      }),
      { seed: 7, numRuns: 500 },
    );
  });

  it('throws nothing but FrameError for bytes that are almost right', () => {
    const edit = fc.tuple(fc.nat(), fc.nat(255));
    fc.assert(
      fc.property(peerMessage, fc.array(edit, { minLength: 1, maxLength: 4 }), (message, edits) => {
        const payload = encodeOne(message);
        for (const [at, byte] of edits) payload.writeUInt8(byte, at % payload.length);
        const error = refusal(payload);
        expect(error === undefined || error instanceof FrameError).toBe(true);
      }),
      { seed: 8, numRuns: 3_000 },
    );
  });

  it('reads each payload alone: none can change how the next is read', () => {
    // Extension 0x72 defines a record shape for the numbers 0x40 to 0x7f of the payload it stands in.
    const poison = ['92d4724091a161', '93d4724091a1614041', 'd5724000', 'd6720000004091a161', '92d472409200'];
    const messages = fc.sample(peerMessage, { seed: 9, numRuns: 50 });
    const [payload = Buffer.alloc(0)] = encodePeerMessages(messages);
    for (const hex of poison) {
      const error = refusal(Buffer.from(hex, 'hex'));
      expect(error).toBeInstanceOf(FrameError);
      expect(plain(decodePeerMessages(payload, FROM, TO))).toEqual(plain(messages));
    }
  });
});

/** Entries have five values, snapshot descriptions nine; members and the list of entries are lists of any length. */
function isRow(value: readonly unknown[]): boolean {
  const isEntry = value.length === 5 && value[4] instanceof Uint8Array;
  const isMeta = value.length === 9 && Array.isArray(value[3]);
  return isEntry || isMeta;
}
