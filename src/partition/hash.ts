/** Key -> partition -> nodes. Fixed with the cluster: another function would send users to other histories. */
import xxhash from 'xxhash-wasm';
import { keySlot, partitionOfSlot } from '../api/key-slot.ts';

export type Hash32 = (text: string) => number;

/** Names `loadHash32` and `partitionOf` together among the facts of a cluster: another function needs another name. */
export const KEY_HASH = 'crc16 slots, xxh32 ring';

/** XXH32 of the UTF-8 bytes, as an unsigned 32-bit number: where nodes and partitions are on the ring of placement. */
export async function loadHash32(): Promise<Hash32> {
  const hasher = await xxhash();
  return (text) => hasher.h32(text);
}

/** All rules and windows of one user live in one partition, so that they are decided in one step. */
export function partitionOf(userId: string, partitionCount: number): number {
  return partitionOfSlot(keySlot(userId), partitionCount);
}
