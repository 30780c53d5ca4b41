/**
 * The identity record: the owner of a database, and the facts of its cluster that were fixed at bootstrap. Written once
 * and compared field by field at every open.
 */
import type { NodeId } from '../raft/types.ts';
import { CHECKSUM_BYTES, checkRecord, sealRecord, type StoredRecord } from './codec.ts';
import { DamageFound } from './errors.ts';
import { IDENTITY_KEY } from './keys.ts';

/** One of the nodes that the cluster was created with. */
export interface Founder {
  readonly id: NodeId;
  readonly incarnation: string;
}

/**
 * The facts that are fixed when a cluster is created. A node with other facts would count other quorums or look for
 * users in other partitions.
 */
export interface ClusterFacts {
  readonly clusterId: string;
  readonly partitions: number;
  /** The number of copies of each partition. */
  readonly replicas: number;
  /** Ascending by id. */
  readonly founders: readonly Founder[];
  /** The name of the function that maps users to partitions. */
  readonly hash: string;
  /** The layout of the database, see docs/internals/storage-format.md. */
  readonly formatVersion: number;
}

/** The owner of a database. */
export interface StoreIdentity {
  readonly nodeId: NodeId;
  /**
   * 128 random bits in hex, drawn when the database was created. They distinguish it from other databases with the same node
   * id.
   */
  readonly incarnation: string;
  readonly facts: ClusterFacts;
}

/** The identity that a node expects before it opens its database. A founder's incarnation is among the facts. */
export type ExpectedIdentity = Omit<StoreIdentity, 'incarnation'>;

/** The format of an incarnation: 32 lower-case hex digits. */
export const INCARNATION = /^[0-9a-f]{32}$/;

/** Encodes the identity record: JSON and a checksum. */
export function encodeIdentity({ nodeId, incarnation, facts }: StoreIdentity): StoredRecord {
  const { clusterId, partitions, replicas, founders, hash, formatVersion } = facts;
  const fields = { formatVersion, clusterId, nodeId, incarnation, partitions, replicas, founders, hash };
  const text = Buffer.from(JSON.stringify(fields));
  return sealRecord(Buffer.concat([IDENTITY_KEY, text, Buffer.alloc(CHECKSUM_BYTES)]), IDENTITY_KEY.length);
}

/**
 * Decodes the identity record. If the database has another layout, returns only its number, because nothing else can be
 * understood.
 *
 * @throws DamageFound
 */
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
  if (!isSound) throw new DamageFound(`the identity record contains ${text}`);
  return {
    nodeId,
    incarnation,
    facts: { clusterId, partitions, replicas, founders, hash, formatVersion },
  };
}

/** Whether `value` is a safe integer >= 0. JSON allows larger numbers, but nobody stores them. */
function isCount(value: unknown): value is number {
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= 0;
}

/** Parses JSON; undefined if it is invalid. */
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

/** A field in which a database differs from what a node expects. */
export interface Difference {
  readonly field: string;
  readonly expected: string;
  readonly found: string;
}

/** The first field that differs; undefined if this is the expected database. */
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
    ['founders', foundersText(facts.founders), foundersText(found.facts.founders)],
    ['incarnation', own, found.incarnation],
  ];
  const differing = fields.find(([, wanted, there]) => wanted !== there);
  if (differing === undefined) return undefined;
  const [field, wanted, there] = differing;
  return { field, expected: wanted, found: there };
}

function foundersText(founders: readonly Founder[]): string {
  return founders.map(({ id, incarnation }) => `${id} (${incarnation})`).join(', ');
}
