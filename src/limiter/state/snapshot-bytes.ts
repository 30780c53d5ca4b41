/** How the bytes of a snapshot are cut into chunks, and the error for bytes that are no snapshot. */

import { ByteReader } from '../../bytes/byte-reader.ts';
import { ByteWriter } from '../../bytes/byte-writer.ts';

/** The largest chunk of a snapshot in bytes. No value is split between two chunks. */
export const CHUNK_BYTES_MAX = 32_768;

/**
 * The maximum size of the first chunk, and by how much each chunk may be larger than the one before. A chunk is written
 * or read without a break, and code that runs for the first time is many times slower than later.
 */
const FIRST_CHUNK_BYTES = 2_048;

/** What is written between two checks of `isFull` takes less than this. */
const PART_BYTES_MAX = 1_024;

/** The bytes of a snapshot are damaged or are not a snapshot. */
export class InvalidSnapshotError extends Error {
  override readonly name = 'InvalidSnapshotError';
  readonly code = 'INVALID_SNAPSHOT';

  constructor(problem: string) {
    super(`not a limiter snapshot: ${problem}`);
  }
}

/** A writer that is full when it contains a chunk. */
export function snapshotWriter(): ByteWriter {
  return new ByteWriter(FIRST_CHUNK_BYTES - PART_BYTES_MAX);
}

/** The bytes written since the last chunk. Valid until more is written. */
export function takeChunk(out: ByteWriter): Uint8Array {
  const chunk = out.written;
  if (out.isFull && out.aimBytes + PART_BYTES_MAX < CHUNK_BYTES_MAX) out.aimBytes += FIRST_CHUNK_BYTES;
  out.clear();
  return chunk;
}

/** A reader that throws `InvalidSnapshotError`. */
export function snapshotReader(): ByteReader {
  return new ByteReader((problem) => new InvalidSnapshotError(problem));
}
