/** Key -> partition. Part of the cluster's fixed configuration: changing it would send users to other histories. */
import xxhash from 'xxhash-wasm';

export type Hash32 = (text: string) => number;

/** Names `loadHash32` and `partitionOf` together among the facts of a cluster: another function needs another name. */
export const KEY_HASH = 'xxh32';

/** XXH32 of the UTF-8 bytes, as an unsigned 32-bit number. */
export async function loadHash32(): Promise<Hash32> {
  const hasher = await xxhash();
  return (text) => hasher.h32(text);
}

/** All rules and windows of one user live in one partition, so that they are decided in one step. */
export function partitionOf(userId: string, partitionCount: number, hash: Hash32): number {
  return hash(userId) % partitionCount;
}
