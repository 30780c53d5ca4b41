/**
 * Measures the free disk space and decides whether it is too low to accept more work. After ENOSPC, LevelDB 1.20
 * accepts writes that are gone at the next open, so proposals must be refused before the disk is full.
 */
import { statfs } from 'node:fs/promises';

/**
 * The default floor in bytes. Opening a database needs space too: for its log rewritten as a table, a new log and a
 * MANIFEST.
 */
export const DEFAULT_FREE_FLOOR_BYTES = 64 * 1024 * 1024;

/** The bytes that an unprivileged process may still write to the file system of `directory`. */
export async function freeBytes(directory: string): Promise<number> {
  const { bavail, bsize } = await statfs(directory);
  return bavail * bsize;
}

/** Whether free space is so low that new proposals must be refused. A `floorBytes` of 0 turns the check off. */
export function isLowDisk(availableBytes: number, floorBytes: number = DEFAULT_FREE_FLOOR_BYTES): boolean {
  return availableBytes < floorBytes;
}
