/**
 * Maps keys to partitions, and provides the hash for the placement of partitions. Fixed with the cluster: a different
 * function would send users to partitions without their history.
 */
import xxhash from 'xxhash-wasm';
import { keySlot, partitionOfSlot } from '../api/key-slot.ts';

/** A 32-bit hash of a text. */
export type Hash32 = (text: string) => number;

/**
 * The name of `loadHash32` and `partitionOf` together in the cluster's fixed facts. A different function needs a
 * different name.
 */
export const KEY_HASH = 'crc16 slots, xxh32 ring';

/** XXH32 of the UTF-8 bytes, as an unsigned 32-bit number. It places nodes and partitions on the ring. */
export async function loadHash32(): Promise<Hash32> {
  const hasher = await xxhash();
  return (text) => hasher.h32(text);
}

const USER_PREFIX = 'user=';

/**
 * The partition of a key, from 0. Everything counted under one key is in one partition, so it is decided in one step. A
 * key with only a user is placed by the Redis Cluster slot of the user id: Redis Cluster clients, which know the id but
 * no keys, find the partition themselves.
 *
 * @param key as rules build it (key-text.ts), e.g. `user=ada`
 * @example partitionOf('user=ada', 64)
 */
export function partitionOf(key: string, partitionCount: number): number {
  return partitionOfSlot(slotOf(key), partitionCount);
}

function slotOf(key: string): number {
  if (!key.startsWith(USER_PREFIX) || key.includes(',')) return keySlot(key);
  if (!key.includes('%')) return keySlot(key, USER_PREFIX.length);
  return keySlot(key.slice(USER_PREFIX.length).replaceAll('%2c', ',').replaceAll('%25', '%'));
}
