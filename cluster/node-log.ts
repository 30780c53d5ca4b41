/**
 * Bounds the log of a node in bytes, over restarts as well: what exceeds the bound moves to a second file, which the next move
 * replaces. The node goes on appending to the same open file, so no node is asked for anything.
 */
import { closeSync, existsSync, fstatSync, ftruncateSync, openSync, readSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

/** Of each of the two files. Between two looks a log may be longer. */
export const LOG_BYTES_MAX = 8 * 1_048_576;

export function logPathOf(directory: string, id: number): string {
  return join(directory, 'logs', `node-${id}.log`);
}

/**
 * Moves the last `bytesMax` bytes of a longer log to `<path>.1`, from the beginning of a line on. Says whether it did. A line that
 * the node writes in the microseconds between the last copy and the cut is lost.
 */
export function maybeRotate(path: string, bytesMax = LOG_BYTES_MAX): boolean {
  if (!existsSync(path)) return false;
  const log = openSync(path, 'a+');
  try {
    const { size } = fstatSync(log);
    if (size <= bytesMax) return false;
    const old = openSync(`${path}.1`, 'w');
    try {
      const tail = bytesOf(log, size - bytesMax, size);
      writeFileSync(old, tail.subarray(tail.indexOf('\n') + 1));
      let copied = size;
      for (let end = fstatSync(log).size; end > copied; end = fstatSync(log).size) {
        writeFileSync(old, bytesOf(log, copied, end));
        copied = end;
      }
      ftruncateSync(log);
    } finally {
      closeSync(old);
    }
    return true;
  } finally {
    closeSync(log);
  }
}

function bytesOf(file: number, start: number, end: number): Buffer {
  const bytes = Buffer.alloc(end - start);
  return bytes.subarray(0, readSync(file, bytes, 0, bytes.length, start));
}
