/**
 * The facts of a cluster: what is fixed when it is created, and what would break the promise if two nodes, or two lives
 * of one node, went by different ones. Derives them from the configuration and nothing else; the database of a node
 * holds those it was created with (storage/identity.ts), the hello of every connection their digest.
 */
import { createHash, randomBytes } from 'node:crypto';
import type { ClusterFacts, Founder } from '../../storage/identity.ts';
import { FORMAT_VERSION } from '../../storage/records.ts';
import { KEY_HASH } from '../partition/hash.ts';

/** The part of a configuration that facts are made of. */
export interface FactSource {
  readonly clusterId: string;
  readonly partitions: number;
  readonly replicas: number;
  readonly founders: readonly Founder[];
}

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

/** The same for equal facts, whatever order a file lists them in; 128 bits in hex. */
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

/** Of a database that is about to be created; no other ever has it. */
export function drawIncarnation(): string {
  return randomBytes(16).toString('hex');
}
