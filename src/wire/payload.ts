/** Payloads as bytes, for what nodes say to each other most. What the fields mean is said in the file of each kind of frame. */
import { ByteReader } from '../bytes/byte-reader.ts';
import type { ByteWriter } from '../bytes/byte-writer.ts';
import { FrameError } from './frame.ts';

/** What was written since this was called last. */
export function takePayload(out: ByteWriter): Buffer {
  const taken = Buffer.allocUnsafe(out.length);
  out.copyTo(taken, 0);
  out.clear();
  return taken;
}

/** It throws FrameErrors. */
export function payloadReader(payload: Uint8Array): ByteReader {
  return new ByteReader((problem) => new FrameError(problem), payload);
}
