/**
 * The facts of a cluster: settings that are fixed at its creation. If two nodes, or one node before and after a
 * restart, used different ones, the promise would break. Each database holds the facts it was created with
 * (storage/identity.ts), and the hello of every connection holds their digest.
 */
import { createHash, randomBytes } from 'node:crypto';
import type { ClusterFacts, Founder } from '../../storage/identity.ts';
import { FORMAT_VERSION } from '../../storage/records.ts';
import { KEY_HASH } from '../partition/hash.ts';

/** The part of a configuration that the facts are made of. */
export interface FactSource {
  readonly clusterId: string;
  readonly partitions: number;
  readonly replicas: number;
  readonly founders: readonly Founder[];
}

/** The facts in a configuration. */
export function factsOf({ clusterId, partitions, replicas, founders }: FactSource): ClusterFacts {
  return {
    clusterId,
    partitions,
    replicas,
    founders: founders.map(({ id, incarnation }) => ({ id, incarnation })).sort((a, b) => a.id - b.id),
    hash: KEY_HASH,
    formatVersion: FORMAT_VERSION,
  };
}

const DIGEST_CHARACTERS = 32;

/** A digest of facts: 128 bits in hex. Equal facts give the same digest, in any order. */
export function factsDigest(facts: ClusterFacts): string {
  const { clusterId, partitions, replicas, founders, hash, formatVersion } = facts;
  const canonical = [
    clusterId,
    partitions,
    replicas,
    founders.map(({ id, incarnation }) => [id, incarnation]),
    hash,
    formatVersion,
  ];
  const digest = createHash('sha256').update(JSON.stringify(canonical)).digest('hex');
  return digest.slice(0, DIGEST_CHARACTERS);
}

/** Draws a random incarnation for a new database: 32 hexadecimal digits. */
export function drawIncarnation(): string {
  return randomBytes(16).toString('hex');
}
