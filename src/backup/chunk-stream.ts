/**
 * Frames the chunks of a snapshot in a byte stream, in files and over HTTP: each chunk follows its length, 32 bits
 * little-endian.
 */
import { BACKUP_CHUNK_BYTES_MAX } from '../api/backup.ts';
import { BackupError } from './backup-error.ts';

const LENGTH_BYTES = 4;

/**
 * The chunks in a byte stream. @throws BackupError if the stream ends within a chunk or a length is invalid; passes
 * on errors of `bytes`
 */
export async function* chunksIn(bytes: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  let rest = Buffer.alloc(0);
  for await (const piece of bytes) {
    rest = rest.length === 0 ? Buffer.from(piece) : Buffer.concat([rest, piece]);
    for (let length = lengthIn(rest); length !== undefined; length = lengthIn(rest)) {
      if (rest.length < LENGTH_BYTES + length) break;
      yield Uint8Array.prototype.slice.call(rest, LENGTH_BYTES, LENGTH_BYTES + length);
      rest = rest.subarray(LENGTH_BYTES + length);
    }
  }
  if (rest.length > 0) throw new BackupError('damaged', 'a snapshot ends within a chunk');
}

function lengthIn(bytes: Buffer): number | undefined {
  if (bytes.length < LENGTH_BYTES) return undefined;
  const length = bytes.readUInt32LE(0);
  if (length === 0 || length > BACKUP_CHUNK_BYTES_MAX)
    throw new BackupError('damaged', `a chunk of ${length} bytes is invalid: 1 to ${BACKUP_CHUNK_BYTES_MAX}`);
  return length;
}

/** A chunk behind its length. */
export function framed(chunk: Uint8Array): Uint8Array {
  const length = Buffer.alloc(LENGTH_BYTES);
  length.writeUInt32LE(chunk.byteLength);
  return Buffer.concat([length, chunk]);
}
