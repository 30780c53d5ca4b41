/** The bytes of a snapshot: how they are cut into chunks, and what is thrown when they are none. Knows no limiter state. */

import { ByteReader } from '../../bytes/byte-reader.ts';
import { ByteWriter } from '../../bytes/byte-writer.ts';

/** The largest chunk of a snapshot. No value is split between two chunks. */
export const CHUNK_BYTES_MAX = 32_768;

/**
 * The first chunk is this large at most, and each may be larger than the one before by as much: a chunk is made, and
 * read, in one go, and code that never ran before is many times slower than it will be.
 */
const FIRST_CHUNK_BYTES = 2_048;

/** Whatever is written between two looks at `isFull` takes less than this. */
const PART_BYTES_MAX = 1_024;

/** Snapshot bytes are damaged or not a snapshot. */
export class InvalidSnapshotError extends Error {
  override readonly name = 'InvalidSnapshotError';
  readonly code = 'INVALID_SNAPSHOT';

  constructor(problem: string) {
    super(`not a limiter snapshot: ${problem}`);
  }
}

/** It is full when it holds a chunk. */
export function snapshotWriter(): ByteWriter {
  return new ByteWriter(FIRST_CHUNK_BYTES - PART_BYTES_MAX);
}

/** What was written since the chunk before; valid until more is written. */
export function takeChunk(out: ByteWriter): Uint8Array {
  const chunk = out.written;
  if (out.isFull && out.aimBytes + PART_BYTES_MAX < CHUNK_BYTES_MAX) out.aimBytes += FIRST_CHUNK_BYTES;
  out.clear();
  return chunk;
}

export function snapshotReader(): ByteReader {
  return new ByteReader((problem) => new InvalidSnapshotError(problem));
}
