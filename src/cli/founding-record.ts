/**
 * The founding record in the volume of a container: how its database came to be. Containers show it to each other. A
 * volume gets a random incarnation when it is first used, so a lost volume cannot be replaced by an empty one
 * unnoticed.
 */
import { readTextIfAny, writeTextSynced } from '../../storage/files.ts';
import { type Founder, INCARNATION } from '../../storage/identity.ts';
import { integerAt, InvalidFieldError, objectAt } from '../api/fields.ts';
import { NODE_ID_MAX, labelAt } from '../api/node-address.ts';
import { drawIncarnation } from '../config/cluster-facts.ts';
import { ConfigError, NODES_MAX, PARTITIONS_MAX } from '../config/config.ts';

const FILE = 'founding.json';
const REPLICAS_MAX = 3;
const SHA256 = /^[0-9a-f]{64}$/;

/** The facts that the cluster was founded with. They are equal on all nodes and never change. */
export interface Founding {
  /** Drawn at the founding. Absent: the founders got the id as a setting. */
  readonly clusterId?: string;
  readonly partitions: number;
  readonly replicas: number;
  readonly founders: readonly Founder[];
  /** SHA-256 of the manifest of the backup that the cluster begins with. Absent: it begins empty. */
  readonly backup?: string;
  /** The zones of the founders that had one. Later changes are kept by the cluster, not here. */
  readonly zones?: readonly FounderZone[];
}

/** The zone of a founder. */
export interface FounderZone {
  readonly id: number;
  readonly zone: string;
}

/** The founding record of a volume. */
export interface FoundingRecord {
  /** Absent: there is no setting, and the founding that draws an id is not agreed on yet. */
  readonly clusterId?: string;
  readonly nodeId: number;
  readonly incarnation: string;
  /**
   * Set by a founder until the founding is agreed on: the SHA-256 of the backup that it would begin with. Absent: none.
   */
  readonly backup?: string;
  /** Set by a founder until the founding is agreed on: its zone. */
  readonly zone?: string;
  /** Absent: the founding is not agreed on yet. */
  readonly founding?: Founding;
  /** The database was created. If it is missing now, it must not be created again. */
  readonly isMade?: true;
}

/**
 * Reads the record of a volume, or creates it.
 *
 * @param own the settings of the container; without a cluster id, that of the volume is accepted
 * @throws ConfigError if the volume belongs to another node or cluster
 */
export async function openRecord(
  directory: string,
  own: Pick<FoundingRecord, 'clusterId' | 'nodeId'>,
): Promise<FoundingRecord> {
  const text = await readTextIfAny(directory, FILE);
  const record =
    text === undefined ? { ...own, incarnation: drawIncarnation() } : recordIn(text, `${directory}/${FILE}`);
  const { nodeId, clusterId = own.clusterId } = record;
  if (nodeId !== own.nodeId || clusterId !== (own.clusterId ?? clusterId)) {
    throw new ConfigError(
      directory,
      `is the volume of node ${nodeId} of ${clusterName(clusterId)}, and not of node ${own.nodeId} of ${clusterName(own.clusterId)}: ` +
        'give this one an empty volume',
    );
  }
  if (text !== undefined && clusterId === record.clusterId) return record;
  const written = { ...record, ...(clusterId !== undefined && { clusterId }) };
  await writeRecord(directory, written);
  return written;
}

/** The cluster in words, for messages. */
export function clusterName(clusterId: string | undefined): string {
  return clusterId === undefined ? 'a cluster without an id yet' : `cluster ${clusterId}`;
}

/** Writes the record atomically. */
export async function writeRecord(directory: string, record: FoundingRecord): Promise<void> {
  await writeTextSynced(directory, FILE, `${JSON.stringify(record, null, 2)}\n`);
}

/** Parses a record. @throws ConfigError with `source` as the field */
export function recordIn(text: string, source: string): FoundingRecord {
  try {
    return validRecord(JSON.parse(text));
  } catch (error) {
    throw new ConfigError(source, `is no record of a volume: ${error instanceof Error ? error.message : ''}`);
  }
}

function validRecord(value: unknown): FoundingRecord {
  const root = objectAt(value, 'record', [
    'clusterId',
    'nodeId',
    'incarnation',
    'backup',
    'zone',
    'founding',
    'isMade',
  ]);
  const { clusterId, backup, zone, founding, isMade } = root;
  return {
    ...(clusterId !== undefined && { clusterId: clusterIdAt(clusterId, 'clusterId') }),
    nodeId: integerAt(root['nodeId'], 'nodeId', 1, NODE_ID_MAX),
    incarnation: incarnationAt(root['incarnation'], 'incarnation'),
    ...(backup !== undefined && { backup: sha256At(backup, 'backup') }),
    ...(zone !== undefined && { zone: labelAt(zone, 'zone') }),
    ...(founding !== undefined && { founding: validFounding(founding) }),
    ...(isMade === true && { isMade }),
  };
}

function validFounding(value: unknown): Founding {
  const founding = objectAt(value, 'founding', [
    'clusterId',
    'partitions',
    'replicas',
    'founders',
    'backup',
    'zones',
  ]);
  const { clusterId, founders, backup, zones } = founding;
  if (!Array.isArray(founders) || founders.length === 0 || founders.length > NODES_MAX)
    throw new InvalidFieldError('founders', `must be a list of 1 to ${NODES_MAX}`);
  return {
    ...(clusterId !== undefined && { clusterId: clusterIdAt(clusterId, 'founding.clusterId') }),
    partitions: integerAt(founding['partitions'], 'partitions', 1, PARTITIONS_MAX),
    replicas: integerAt(founding['replicas'], 'replicas', 1, NODES_MAX),
    founders: founders.map((each: unknown, i) => {
      const founder = objectAt(each, `founders[${i}]`, ['id', 'incarnation']);
      return {
        id: integerAt(founder['id'], `founders[${i}].id`, 1, NODE_ID_MAX),
        incarnation: incarnationAt(founder['incarnation'], `founders[${i}].incarnation`),
      };
    }),
    ...(backup !== undefined && { backup: sha256At(backup, 'founding.backup') }),
    ...(zones !== undefined && { zones: zonesAt(zones) }),
  };
}

function zonesAt(value: unknown): readonly FounderZone[] {
  if (!Array.isArray(value) || value.length > NODES_MAX)
    throw new InvalidFieldError('founding.zones', `must be a list of at most ${NODES_MAX}`);
  return value.map((each: unknown, i) => {
    const path = `founding.zones[${i}]`;
    const { id, zone } = objectAt(each, path, ['id', 'zone']);
    return { id: integerAt(id, `${path}.id`, 1, NODE_ID_MAX), zone: labelAt(zone, `${path}.zone`) };
  });
}

function clusterIdAt(value: unknown, path: string): string {
  if (typeof value === 'string' && value !== '') return value;
  throw new InvalidFieldError(path, 'must be text');
}

function incarnationAt(value: unknown, path: string): string {
  if (typeof value === 'string' && INCARNATION.test(value)) return value;
  throw new InvalidFieldError(path, 'must be 32 hexadecimal digits in lower case');
}

function sha256At(value: unknown, path: string): string {
  if (typeof value === 'string' && SHA256.test(value)) return value;
  throw new InvalidFieldError(path, 'must be 64 hexadecimal digits in lower case');
}

/**
 * Returns the founding that this volume or another one remembers.
 *
 * @param records the records of the founders that answered, by node id
 * @throws ConfigError if the cluster was founded with another volume of this node
 */
export function knownFounding(
  own: FoundingRecord,
  records: ReadonlyMap<number, FoundingRecord>,
): Founding | undefined {
  const all = [own, ...records.values()].flatMap(({ founding }) => founding ?? []);
  const [known, ...others] = all;
  const other = others.find(({ clusterId }) => clusterId !== known?.clusterId);
  if (other !== undefined)
    throw new ConfigError(
      'QUORATE_CLUSTER_ID',
      `must be given: the other containers are of two clusters, ${known?.clusterId} and ${other.clusterId}`,
    );
  const same = known?.founders.find(({ id }) => id === own.nodeId);
  if (same === undefined || same.incarnation === own.incarnation) return known;
  throw new ConfigError(
    `node ${own.nodeId}`,
    'has another volume than the one that the cluster was founded with, so its votes and grants would be lost. Bring that volume back, or ' +
      'give this container a new id in QUORATE_NODE_IDS and replace the old node by it',
  );
}

/**
 * Decides the founding from the own record and those of the other founders.
 *
 * @param records the records of the founders that answered, by node id
 * @returns undefined while records are missing
 * @throws ConfigError if the cluster was founded with another volume of this node, or the founders would begin with
 *   different backups
 */
export function foundingOf(
  own: FoundingRecord,
  records: ReadonlyMap<number, FoundingRecord>,
  { founders, partitions }: { readonly founders: number; readonly partitions: number },
): Founding | undefined {
  const known = knownFounding(own, records);
  if (known !== undefined) return known;
  const ids = Array.from({ length: founders }, (_, i) => i + 1);
  if (!ids.includes(own.nodeId)) return undefined;
  const all = ids.map((id) => (id === own.nodeId ? own : records.get(id)));
  for (const other of all) if (other !== undefined) refuseDifferent(own, other);
  // Only node 1 founds a cluster, and only after all other founders have answered that they know of none.
  if (own.nodeId !== 1 || !all.every((record) => record !== undefined)) return undefined;
  const zones = all.flatMap(({ nodeId: id, zone }) => (zone === undefined ? [] : [{ id, zone }]));
  return {
    // The incarnation of the volume is unique, so it can be the id of the cluster.
    ...(own.clusterId === undefined && { clusterId: own.incarnation }),
    partitions,
    replicas: Math.min(REPLICAS_MAX, founders),
    founders: all.map(({ nodeId: id, incarnation }) => ({ id, incarnation })),
    ...(own.backup !== undefined && { backup: own.backup }),
    ...(zones.length > 0 && { zones }),
  };
}

/** Databases from different backups would not form one cluster. */
function refuseDifferent(own: FoundingRecord, other: FoundingRecord): void {
  if (own.backup === other.backup) return;
  const each = [own, other].map(({ nodeId, backup }) =>
    backup === undefined
      ? `node ${nodeId} has none`
      : `node ${nodeId} has one with a manifest of SHA-256 ${backup}`,
  );
  throw new ConfigError(
    'QUORATE_RESTORE_FROM',
    `must be the same backup in all founders, or unset in all: ${each.join(', ')}. Use the same setting, and start them again`,
  );
}
