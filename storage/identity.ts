/**
 * Whose database this is, and the facts of its cluster that were fixed when it was created. Written once, at
 * bootstrap, and compared field by field at every open. Bytes and comparison only: nothing is derived here.
 */
import type { NodeId } from '../raft/types.ts';
import { CHECKSUM_BYTES, checkRecord, sealRecord, type StoredRecord } from './codec.ts';
import { DamageFound } from './errors.ts';
import { IDENTITY_KEY } from './keys.ts';

/** One of the nodes that a cluster is created with. */
export interface Founder {
  readonly id: NodeId;
  readonly incarnation: string;
}

/** Fixed for good when a cluster is created: who goes by others counts other quorums, or looks for users elsewhere. */
export interface ClusterFacts {
  readonly clusterId: string;
  readonly partitions: number;
  /** Copies of each partition. */
  readonly replicas: number;
  /** By id. */
  readonly founders: readonly Founder[];
  /** Names the function that maps users to partitions. */
  readonly hash: string;
  /** The layout of the database; see storage/README.md. */
  readonly formatVersion: number;
}

export interface StoreIdentity {
  readonly nodeId: NodeId;
  /** 128 random bits in hex, drawn when the database was created: tells it from any other under the same node id. */
  readonly incarnation: string;
  readonly facts: ClusterFacts;
}

/** What a node knows before it opens its database. A founder's incarnation is among the facts. */
export type ExpectedIdentity = Omit<StoreIdentity, 'incarnation'>;

export const INCARNATION = /^[0-9a-f]{32}$/;

export function encodeIdentity({ nodeId, incarnation, facts }: StoreIdentity): StoredRecord {
  const { clusterId, partitions, replicas, founders, hash, formatVersion } = facts;
  const fields = { formatVersion, clusterId, nodeId, incarnation, partitions, replicas, founders, hash };
  const text = Buffer.from(JSON.stringify(fields));
  return sealRecord(Buffer.concat([IDENTITY_KEY, text, Buffer.alloc(CHECKSUM_BYTES)]), IDENTITY_KEY.length);
}

/** Undefined, with its number, if the database has another layout: then nothing else in it is understood. */
export function decodeIdentity(
  key: Buffer,
  value: Buffer,
  formatVersion: number,
): StoreIdentity | { readonly formatVersion: number } {
  checkRecord(key, value, 2, 'the identity record');
  const text = value.toString('utf8', 0, value.length - CHECKSUM_BYTES);
  const parsed = parsedJson(text);
  const fields = (typeof parsed === 'object' && parsed !== null ? parsed : {}) as Record<string, unknown>;
  const found = fields['formatVersion'];
  if (typeof found === 'number' && found !== formatVersion) return { formatVersion: found };
  const { clusterId, nodeId, incarnation, partitions, replicas, founders, hash } = fields;
  const isSound =
    found === formatVersion &&
    typeof clusterId === 'string' &&
    isCount(nodeId) &&
    typeof incarnation === 'string' &&
    isCount(partitions) &&
    isCount(replicas) &&
    typeof hash === 'string' &&
    Array.isArray(founders) &&
    founders.every(isFounder);
  if (!isSound) throw new DamageFound(`the identity record holds ${text}`);
  return {
    nodeId,
    incarnation,
    facts: { clusterId, partitions, replicas, founders, hash, formatVersion },
  };
}

/** JSON knows larger numbers, which are stored by nobody. */
function isCount(value: unknown): value is number {
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= 0;
}

/** Undefined if it is not JSON. */
function parsedJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function isFounder(value: unknown): value is Founder {
  if (typeof value !== 'object' || value === null) return false;
  if (!('id' in value && 'incarnation' in value)) return false;
  return isCount(value.id) && typeof value.incarnation === 'string';
}

/** One field in which a database is not what a node expects. */
export interface Difference {
  readonly field: string;
  readonly expected: string;
  readonly found: string;
}

/** The first field that differs; undefined if this is the database of `expected`. */
export function differenceOf(expected: ExpectedIdentity, found: StoreIdentity): Difference | undefined {
  const { nodeId, facts } = expected;
  const own = facts.founders.find(({ id }) => id === nodeId)?.incarnation ?? found.incarnation;
  const fields: readonly [field: string, expected: string, found: string][] = [
    ['formatVersion', String(facts.formatVersion), String(found.facts.formatVersion)],
    ['clusterId', facts.clusterId, found.facts.clusterId],
    ['node id', String(nodeId), String(found.nodeId)],
    ['partitions', String(facts.partitions), String(found.facts.partitions)],
    ['replicas', String(facts.replicas), String(found.facts.replicas)],
    ['hash', facts.hash, found.facts.hash],
    ['founders', told(facts.founders), told(found.facts.founders)],
    ['incarnation', own, found.incarnation],
  ];
  const differing = fields.find(([, wanted, there]) => wanted !== there);
  if (differing === undefined) return undefined;
  const [field, wanted, there] = differing;
  return { field, expected: wanted, found: there };
}

function told(founders: readonly Founder[]): string {
  return founders.map(({ id, incarnation }) => `${id} (${incarnation})`).join(', ');
}
