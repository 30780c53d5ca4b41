/** Tests frames: encoding, splitting, and refusal of damaged ones. */
import { crc32 } from 'node:zlib';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  clusterTag,
  encodeFrame,
  FRAME_HEADER_BYTES,
  FRAME_PAYLOAD_BYTES_MAX,
  FRAME_TYPES,
  FrameDecoder,
  FrameError,
  type FrameType,
} from '../../src/wire/frame.ts';

const TAG = clusterTag('cluster-a');
const TYPES = Object.keys(FRAME_TYPES) as FrameType[];

interface Received {
  readonly type: FrameType;
  readonly payload: Uint8Array;
}

/** Collects the frames that a decoder returns for its input. */
class Receiver {
  readonly frames: Received[] = [];
  readonly #decoder = new FrameDecoder(TAG);

  push(bytes: Uint8Array): void {
    this.#decoder.push(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength), ({ type, payload }) =>
      this.frames.push({ type, payload: Uint8Array.from(payload) }),
    );
  }

  /** The error of the first push that fails. */
  errorOf(...chunks: readonly Uint8Array[]): unknown {
    try {
      for (const chunk of chunks) this.push(chunk);
    } catch (error) {
      return error;
    }
    return undefined;
  }
}

const frame = fc.record({
  type: fc.constantFrom(...TYPES),
  payload: fc.uint8Array({ maxLength: 200 }),
});

describe('frames', () => {
  it('are decoded as they were encoded, for any splits of the stream', () => {
    fc.assert(
      fc.property(
        fc.array(frame, { maxLength: 8 }),
        fc.array(fc.integer({ min: 1, max: 97 }), { minLength: 1, maxLength: 20 }),
        (frames, sizes) => {
          const stream = Buffer.concat(frames.map(({ type, payload }) => encodeFrame(type, payload, TAG)));
          const receiver = new Receiver();
          for (let at = 0, i = 0; at < stream.length; i += 1) {
            const size = sizes[i % sizes.length] ?? 1;
            receiver.push(stream.subarray(at, at + size));
            at += size;
          }
          expect(receiver.frames).toEqual(frames);
        },
      ),
      { seed: 1, numRuns: 300 },
    );
  });

  it('may arrive one byte at a time', () => {
    const receiver = new Receiver();
    const stream = Buffer.concat([
      encodeFrame('hello', new Uint8Array(0), TAG),
      encodeFrame('answers', Uint8Array.of(1, 2, 3), TAG),
    ]);
    for (const byte of stream) receiver.push(Uint8Array.of(byte));
    expect(receiver.frames.map(({ type, payload }) => [type, payload.length])).toEqual([
      ['hello', 0],
      ['answers', 3],
    ]);
  });

  it('may be as long as the bound, and no longer', () => {
    const receiver = new Receiver();
    receiver.push(encodeFrame('peerMessages', new Uint8Array(FRAME_PAYLOAD_BYTES_MAX), TAG));
    expect(receiver.frames[0]?.payload).toHaveLength(FRAME_PAYLOAD_BYTES_MAX);
    expect(() => encodeFrame('peerMessages', new Uint8Array(FRAME_PAYLOAD_BYTES_MAX + 1), TAG)).toThrow(
      `a frame of ${FRAME_PAYLOAD_BYTES_MAX + 1} bytes exceeds ${FRAME_PAYLOAD_BYTES_MAX}`,
    );
  });
});

/** A frame with a changed header and a correct checksum of that header. */
function changed(change: (frame: Buffer) => void): Buffer {
  const bytes = encodeFrame('status', Uint8Array.of(1, 2, 3), TAG);
  change(bytes);
  bytes.writeUInt32BE(crc32(bytes.subarray(0, FRAME_HEADER_BYTES - 4)), FRAME_HEADER_BYTES - 4);
  return bytes;
}

/** As many bytes as the longest frame: a decoder may have to wait for all bytes of a damaged length. */
const REST = Buffer.alloc(FRAME_PAYLOAD_BYTES_MAX + FRAME_HEADER_BYTES);

describe('a bad frame', () => {
  it.each([
    ['magic', changed((f) => f.writeUInt16BE(0x4745, 0)), 'not a Quorate frame (magic 0x4745)'],
    ['an HTTP request', Buffer.from('GET / HTTP/1.1\r\nhost: a\r\n\r\n'), 'not a Quorate frame'],
    ['version', changed((f) => f.writeUInt8(12, 2)), 'protocol version 12, expected 1'],
    [
      'another cluster',
      encodeFrame('status', new Uint8Array(3), clusterTag('cluster-b')),
      'belongs to another cluster',
    ],
    ['length 2^31', changed((f) => f.writeUInt32BE(2 ** 31, 12)), `2147483648 bytes exceeds ${32 << 20}`],
    ['length 2^32 - 1', changed((f) => f.writeUInt32BE(2 ** 32 - 1, 12)), '4294967295 bytes exceeds'],
    ['type', changed((f) => f.writeUInt8(99, 3)), 'unknown frame type 99'],
  ])('is refused: %s', (_what, bytes, message) => {
    const receiver = new Receiver();
    const error = receiver.errorOf(bytes);
    expect(error).toBeInstanceOf(FrameError);
    expect(error).toMatchObject({ code: 'FRAME', message: expect.stringMatching(pattern(message)) });
    expect(receiver.frames).toEqual([]);
  });

  it('with an impossible length is refused by its header alone, before memory is allocated for it', () => {
    const header = changed((f) => f.writeUInt32BE(FRAME_PAYLOAD_BYTES_MAX + 1, 12)).subarray(
      0,
      FRAME_HEADER_BYTES,
    );
    const receiver = new Receiver();
    expect(receiver.errorOf(header.subarray(0, -1))).toBeUndefined();
    expect(receiver.errorOf(header.subarray(-1))).toBeInstanceOf(FrameError);
  });

  it('does not affect valid ones before it', () => {
    const receiver = new Receiver();
    const good = encodeFrame('answers', Uint8Array.of(7), TAG);
    expect(receiver.errorOf(Buffer.concat([good, Buffer.alloc(FRAME_HEADER_BYTES)]))).toBeInstanceOf(
      FrameError,
    );
    expect(receiver.frames).toEqual([{ type: 'answers', payload: Uint8Array.of(7) }]);
  });

  it('cut short is never delivered', () => {
    const whole = encodeFrame('requests', Uint8Array.of(1, 2, 3, 4), TAG);
    for (let length = 0; length < whole.length; length += 1) {
      const receiver = new Receiver();
      expect(receiver.errorOf(whole.subarray(0, length))).toBeUndefined();
      expect(receiver.frames).toEqual([]);
    }
    // The next frame comes in the place of the missing bytes.
    for (let length = 1; length < whole.length; length += 1) {
      const receiver = new Receiver();
      const error = receiver.errorOf(whole.subarray(0, length), whole, REST);
      expect(error).toBeInstanceOf(FrameError);
      expect(receiver.frames).toEqual([]);
    }
  });

  it('is noticed, if any bit of it flipped', () => {
    const whole = encodeFrame(
      'peerMessages',
      Uint8Array.from({ length: 9 }, (_, i) => i * 29),
      TAG,
    );
    for (let bit = 0; bit < whole.length * 8; bit += 1) {
      const receiver = new Receiver();
      const error = receiver.errorOf(flipped(whole, bit), REST);
      expect({ bit, isFrameError: error instanceof FrameError, frames: receiver.frames }).toEqual({
        bit,
        isFrameError: true,
        frames: [],
      });
    }
  });

  it('is noticed by its header alone if the damage is in the header', () => {
    const whole = encodeFrame('peerMessages', new Uint8Array(9), TAG);
    for (let bit = 0; bit < FRAME_HEADER_BYTES * 8; bit += 1) {
      const error = new Receiver().errorOf(flipped(whole, bit));
      expect({ bit, isFrameError: error instanceof FrameError }).toEqual({ bit, isFrameError: true });
    }
  });
});

function flipped(bytes: Buffer, bit: number): Buffer {
  const copy = Buffer.from(bytes);
  copy.writeUInt8(copy.readUInt8(bit >> 3) ^ (1 << (bit & 7)), bit >> 3);
  return copy;
}

function pattern(message: string | RegExp): RegExp {
  return typeof message === 'string' ? new RegExp(message.replace(/[()^*.]/g, '\\$&')) : message;
}

describe('a stream of random bytes', () => {
  it('is refused or waits for more, and delivers nothing', () => {
    fc.assert(
      fc.property(fc.array(fc.uint8Array({ maxLength: 64 }), { maxLength: 8 }), (chunks) => {
        const receiver = new Receiver();
        const error = receiver.errorOf(...chunks);
        expect(error === undefined || error instanceof FrameError).toBe(true);
        expect(receiver.frames).toEqual([]);
      }),
      { seed: 2, numRuns: 500 },
    );
  });
});

describe('the cluster tag', () => {
  it('is the first 8 bytes of SHA-256 of the cluster id', () => {
    expect(clusterTag('abc').toString('hex')).toBe('ba7816bf8f01cfea');
  });
});
