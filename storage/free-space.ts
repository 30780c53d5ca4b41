/**
 * How much room the disk has, and whether it is low: too little to accept more work. After ENOSPC LevelDB 1.20 accepts
 * writes that are gone at the next open, so proposals must be refused before the disk is full. No timers here.
 */
import { statfs } from 'node:fs/promises';

/** Opening a database needs room too: for its log rewritten as a table, a new log and a MANIFEST. */
export const DEFAULT_FREE_FLOOR_BYTES = 64 * 1024 * 1024;

/**
 * Bytes that an unprivileged process may still write to the file system of `directory`.
 *
 * @example
 * const lowDisk = isLowDisk(await freeBytes('data/node-1'));
 */
export async function freeBytes(directory: string): Promise<number> {
  const { bavail, bsize } = await statfs(directory);
  return bavail * bsize;
}

/** Whether the disk is low, and new proposals must be refused. `floorBytes` of 0 switches the check off. */
export function isLowDisk(availableBytes: number, floorBytes: number = DEFAULT_FREE_FLOOR_BYTES): boolean {
  return availableBytes < floorBytes;
}
