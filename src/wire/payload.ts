/**
 * Writers and readers of payloads in a compact byte format, for the most frequent frames. The file of each kind of
 * frame says what its fields mean.
 */
import { ByteReader } from '../bytes/byte-reader.ts';
import type { ByteWriter } from '../bytes/byte-writer.ts';
import { FrameError } from './frame.ts';

/** The bytes written since the last call. */
export function takePayload(out: ByteWriter): Buffer {
  const taken = Buffer.allocUnsafe(out.length);
  out.copyTo(taken, 0);
  out.clear();
  return taken;
}

/** A reader that throws FrameErrors. */
export function payloadReader(payload: Uint8Array): ByteReader {
  return new ByteReader((problem) => new FrameError(problem), payload);
}
