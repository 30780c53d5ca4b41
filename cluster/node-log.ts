/**
 * Bounds the size of a node's log file, also across restarts: when it is too long, its end moves to a second file,
 * which the next rotation replaces. The node keeps appending to the same open file and notices nothing.
 */
import { closeSync, existsSync, fstatSync, ftruncateSync, openSync, readSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

/** Longest length of each of the two files, in bytes. A log can be longer between two checks. */
export const LOG_BYTES_MAX = 8 * 1_048_576;

/** The path of a node's log in the directory of its cluster. */
export function logPathOf(directory: string, id: number): string {
  return join(directory, 'logs', `node-${id}.log`);
}

/**
 * If the log is longer than `bytesMax`, moves its last `bytesMax` bytes to `<path>.1`, from the beginning of a line,
 * and returns true. A line that the node writes in the microseconds between the last copy and the cut is lost.
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
