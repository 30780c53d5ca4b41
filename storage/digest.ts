/**
 * A digest over all group records: an XOR of one hash per record, so that a changed record costs one hash. It detects
 * lost writes; it is no protection against an attacker.
 */
import type { GroupId } from '../raft/types.ts';
import type { Digest } from './records.ts';

/** The digest of no records. */
export const EMPTY_DIGEST: Digest = { high: 0, low: 0 };

/**
 * The hash of one group record. CRCs are linear: if they were XORed unchanged, two groups that lost the same change
 * (the term and the vote, as in one lost batch) would cancel out. So each passes through a non-linear mix with its
 * group and batch.
 */
export function recordHash(group: GroupId, batch: number, checksum: number): Digest {
  const high = mix32(checksum ^ mix32(group + 0x9e37_79b9));
  const low = mix32(high ^ mix32(batch % 0x1_0000_0000) ^ checksum);
  return { high, low };
}

/** Adds a hash to the digest or removes it: XOR is its own inverse. */
export function combine(digest: Digest, hash: Digest): Digest {
  return { high: (digest.high ^ hash.high) >>> 0, low: (digest.low ^ hash.low) >>> 0 };
}

/** The finalizer of MurmurHash3 (Appleby): each input bit changes about half of the output bits. */
function mix32(input: number): number {
  let hash = input | 0;
  hash = Math.imul(hash ^ (hash >>> 16), 0x85eb_ca6b);
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2_ae35);
  return (hash ^ (hash >>> 16)) >>> 0;
}
