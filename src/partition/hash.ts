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

const USER_PREFIX = 'user=';

/**
 * All that is counted under one key lies in one partition, so that it is decided in one step. A user alone lies where the slot of
 * the id is: clients of Redis Cluster, which know the id and no keys, find the partition themselves.
 *
 * @param key as rules make it (key-text.ts), such as `user=ada`
 */
export function partitionOf(key: string, partitionCount: number): number {
  return partitionOfSlot(slotOf(key), partitionCount);
}

function slotOf(key: string): number {
  if (!key.startsWith(USER_PREFIX) || key.includes(',')) return keySlot(key);
  if (!key.includes('%')) return keySlot(key, USER_PREFIX.length);
  return keySlot(key.slice(USER_PREFIX.length).replaceAll('%2c', ',').replaceAll('%25', '%'));
}
