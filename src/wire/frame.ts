/**
 * The frames on a connection between nodes. Every frame carries the protocol version, the cluster and checksums, so
 * that a damaged or foreign byte stream is recognised before anything in it is used.
 *
 *   offset  0  u16  magic 0x5152 ("QR")
 *           2  u8   version: that of the handshake, later the one that both ends agreed on
 *           3  u8   frame type
 *           4  u64  cluster tag: first 8 bytes of SHA-256 of the cluster id
 *          12  u32  payload length in bytes
 *          16  u32  CRC-32 of the payload
 *          20  u32  CRC-32 of the first 20 bytes, so that a damaged length does not make the receiver wait
 *          24  ...  payload
 *
 * All numbers are big-endian.
 */
import { createHash } from 'node:crypto';
import { crc32 } from 'node:zlib';

/**
 * Version of the frames hello, welcome and refused. It never changes, as before them neither end knows what the
 * other speaks. All versions ignore unknown fields at the end of them, so later versions can greet earlier ones.
 */
export const HANDSHAKE_VERSION = 1;
/** Length of the header. */
export const FRAME_HEADER_BYTES = 24;
/** Longest payload. */
export const FRAME_PAYLOAD_BYTES_MAX = 32 << 20;
const MAGIC = 0x5152;

/** The code of each frame type. */
export const FRAME_TYPES = {
  hello: 0,
  peerMessages: 1,
  requests: 2,
  answers: 3,
  status: 4,
  settled: 5,
  change: 6,
  changed: 7,
  welcome: 8,
  refused: 9,
  ping: 10,
  pong: 11,
  offers: 12,
  capacity: 13,
  leaving: 14,
  alive: 15,
  usage: 16,
  usageReported: 17,
  load: 18,
} as const;
export type FrameType = keyof typeof FRAME_TYPES;
/** The types that nodes exchange after the handshake. The others belong to the transport. */
export type PeerFrameType = Exclude<FrameType, 'hello' | 'welcome' | 'refused' | 'alive'>;
const TYPE_NAMES = new Map<number, FrameType>(
  Object.entries(FRAME_TYPES).map(([name, code]) => [code, name as FrameType]),
);

/** The bytes on a connection are not valid frames of this cluster. The connection must be closed. */
export class FrameError extends Error {
  readonly code = 'FRAME';

  constructor(message: string) {
    super(message);
    this.name = 'FrameError';
  }
}

/** A decoded frame. */
export interface Frame {
  readonly type: FrameType;
  /** Shares memory with the receive buffer; copy what has to outlive the handler. */
  readonly payload: Uint8Array;
}

/** The cluster tag: the first 8 bytes of SHA-256 of the cluster id. */
export function clusterTag(clusterId: string): Buffer {
  return createHash('sha256').update(clusterId).digest().subarray(0, 8);
}

/**
 * Encodes a frame. @param version the agreed version, or that of the handshake. @throws FrameError if the payload
 * is too long
 */
export function encodeFrame(
  type: FrameType,
  payload: Uint8Array,
  tag: Uint8Array,
  version = HANDSHAKE_VERSION,
): Buffer {
  if (payload.byteLength > FRAME_PAYLOAD_BYTES_MAX) {
    throw new FrameError(`a frame of ${payload.byteLength} bytes exceeds ${FRAME_PAYLOAD_BYTES_MAX}`);
  }
  const frame = Buffer.allocUnsafe(FRAME_HEADER_BYTES + payload.byteLength);
  frame.writeUInt16BE(MAGIC, 0);
  frame.writeUInt8(version, 2);
  frame.writeUInt8(FRAME_TYPES[type], 3);
  frame.set(tag, 4);
  frame.writeUInt32BE(payload.byteLength, 12);
  frame.set(payload, FRAME_HEADER_BYTES);
  frame.writeUInt32BE(crc32(payload), 16);
  frame.writeUInt32BE(crc32(frame.subarray(0, 20)), 20);
  return frame;
}

/** Splits a byte stream into frames. Memory is bounded by one frame and one read of the socket. */
export class FrameDecoder {
  readonly #tag: Uint8Array;
  readonly #parts: Buffer[] = [];
  #buffered = 0;
  /** Longest accepted payload. Small until the sender has said hello. */
  payloadBytesMax: number;
  /** Accepted version: that of the handshake until both ends have agreed. */
  version = HANDSHAKE_VERSION;
  /** Bytes needed before the next step. */
  #needed = FRAME_HEADER_BYTES;

  constructor(tag: Uint8Array, payloadBytesMax: number = FRAME_PAYLOAD_BYTES_MAX) {
    this.#tag = tag;
    this.payloadBytesMax = payloadBytesMax;
  }

  /**
   * Takes the next bytes and calls `onFrame` for each complete frame. @throws FrameError at the first invalid one
   */
  push(bytes: Buffer, onFrame: (frame: Frame) => void): void {
    this.#parts.push(bytes);
    this.#buffered += bytes.byteLength;
    if (this.#buffered < this.#needed) return;
    const first = this.#parts[0];
    const buffer = this.#parts.length === 1 && first !== undefined ? first : Buffer.concat(this.#parts);
    this.#parts.length = 0;
    let offset = 0;
    this.#needed = FRAME_HEADER_BYTES;
    while (buffer.byteLength - offset >= FRAME_HEADER_BYTES) {
      const length = this.#checkHeader(buffer, offset);
      const end = offset + FRAME_HEADER_BYTES + length;
      if (buffer.byteLength < end) {
        this.#needed = FRAME_HEADER_BYTES + length;
        break;
      }
      onFrame(this.#frame(buffer.subarray(offset, end)));
      offset = end;
    }
    if (offset < buffer.byteLength) this.#parts.push(buffer.subarray(offset));
    this.#buffered = buffer.byteLength - offset;
  }

  /** Checks everything that can be checked before the payload arrives, above all its length. */
  #checkHeader(buffer: Buffer, offset: number): number {
    const magic = buffer.readUInt16BE(offset);
    if (magic !== MAGIC) throw new FrameError(`not a Quorate frame (magic 0x${magic.toString(16)})`);
    const version = buffer.readUInt8(offset + 2);
    if (version !== this.version) {
      throw new FrameError(`protocol version ${version}, expected ${this.version}`);
    }
    if (buffer.compare(this.#tag, 0, 8, offset + 4, offset + 12) !== 0) {
      throw new FrameError('the frame belongs to another cluster');
    }
    const length = buffer.readUInt32BE(offset + 12);
    if (length > this.payloadBytesMax) {
      throw new FrameError(`a frame of ${length} bytes exceeds ${this.payloadBytesMax}`);
    }
    if (buffer.readUInt32BE(offset + 20) !== crc32(buffer.subarray(offset, offset + 20))) {
      throw new FrameError('the header of a frame is damaged (CRC-32)');
    }
    return length;
  }

  #frame(bytes: Buffer): Frame {
    const payload = bytes.subarray(FRAME_HEADER_BYTES);
    if (bytes.readUInt32BE(16) !== crc32(payload)) throw new FrameError('the frame is damaged (CRC-32)');
    const type = TYPE_NAMES.get(bytes.readUInt8(3));
    if (type === undefined) throw new FrameError(`unknown frame type ${bytes.readUInt8(3)}`);
    return { type, payload };
  }
}
