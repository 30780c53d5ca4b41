/**
 * Frames on a connection between nodes. Every frame carries the protocol version, the cluster and a checksum, so
 * that a stray, damaged or foreign byte stream is recognised before anything in it is believed.
 *
 *   offset  0  u16  magic 0x5152 ("QR")
 *           2  u8   version: of the handshake, or the one that both ends agreed on in it
 *           3  u8   frame type
 *           4  u64  cluster tag: first 8 bytes of SHA-256 of the cluster id
 *          12  u32  payload length in bytes
 *          16  u32  CRC-32 of the payload
 *          20  u32  CRC-32 of the first 20 bytes: a damaged length must not make the receiver wait for bytes
 *          24  ...  payload
 *
 * All numbers are big-endian.
 */
import { createHash } from 'node:crypto';
import { crc32 } from 'node:zlib';

/**
 * The version of hello, welcome and refused, which never changes: before them neither end knows what the other speaks. All versions skip what follows the fields
 * that they know, so later ones can greet the first and each other.
 */
export const HANDSHAKE_VERSION = 1;
export const FRAME_HEADER_BYTES = 24;
export const FRAME_PAYLOAD_BYTES_MAX = 32 << 20;
const MAGIC = 0x5152;

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
  usageTold: 17,
  load: 18,
} as const;
export type FrameType = keyof typeof FRAME_TYPES;
/** What nodes say to each other once they know who the other is. The rest is the transport's own. */
export type PeerFrameType = Exclude<FrameType, 'hello' | 'welcome' | 'refused' | 'alive'>;
const TYPE_NAMES = new Map<number, FrameType>(
  Object.entries(FRAME_TYPES).map(([name, code]) => [code, name as FrameType]),
);

/** The bytes on a connection are not frames of this cluster. The connection must be closed. */
export class FrameError extends Error {
  readonly code = 'FRAME';

  constructor(message: string) {
    super(message);
    this.name = 'FrameError';
  }
}

export interface Frame {
  readonly type: FrameType;
  /** Shares memory with the receive buffer: copy what outlives the handler. */
  readonly payload: Uint8Array;
}

export function clusterTag(clusterId: string): Buffer {
  return createHash('sha256').update(clusterId).digest().subarray(0, 8);
}

/** @param version what both ends agreed on; that of the handshake before they did */
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

/** Cuts a byte stream into frames. Memory is bounded by one frame and one read of the socket. */
export class FrameDecoder {
  readonly #tag: Uint8Array;
  readonly #parts: Buffer[] = [];
  #buffered = 0;
  /** The longest payload taken. Small until the sender has said who it is. */
  payloadBytesMax: number;
  /** The one taken. That of the handshake until both ends agreed on theirs. */
  version = HANDSHAKE_VERSION;
  /** Bytes needed before anything more can be decided. */
  #needed = FRAME_HEADER_BYTES;

  constructor(tag: Uint8Array, payloadBytesMax: number = FRAME_PAYLOAD_BYTES_MAX) {
    this.#tag = tag;
    this.payloadBytesMax = payloadBytesMax;
  }

  /** Takes the next bytes and calls `onFrame` for each complete frame. Throws FrameError on the first bad one. */
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

  /** Everything that can be refused before the payload arrived is refused here, its length first of all. */
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
