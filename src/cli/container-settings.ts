/**
 * Reads the settings of a container from its environment: which node it runs, where the others are, and how the cluster
 * is founded. It opens no files but those with settings.
 */
import { readFile } from 'node:fs/promises';
import { InvalidFieldError } from '../api/fields.ts';
import { NODE_ID_MAX, type NodeAddress, validateNode, isLabel, LABEL_BOUND } from '../api/node-address.ts';
import { pathText, repeatedKeysIn } from '../api/repeated-keys.ts';
import { ConfigError, LOG_LEVELS, type LogLevel, NODES_MAX, PARTITIONS_MAX } from '../config/config.ts';
import { LOG_FORMATS, type LogFormat } from './node-logger.ts';

/** The checked settings of a container. */
export interface ContainerSettings {
  /** Absent: the founding draws one. */
  readonly clusterId?: string;
  /** The number of this container, from 0. */
  readonly ordinal: number;
  readonly nodeId: number;
  /** Number of nodes that found the cluster. They have the first ordinals. */
  readonly founders: number;
  /** Absent: the default. */
  readonly partitions?: number;
  /** The directory of the backup to begin with. */
  readonly restoreFrom?: string;
  /** The zone of this node. Used when it founds the cluster. */
  readonly zone?: string;
  /** Returns the address of the container with an ordinal. */
  readonly addressOf: (ordinal: number) => NodeAddress;
  readonly listen: string;
  readonly foundingPort: number;
  readonly data: string;
  /** Settings from files, in the form of `cluster.json`: those that can differ by node. */
  readonly local: Readonly<Record<string, unknown>>;
  readonly insecure: boolean;
  /** Absent: the level in the settings files. */
  readonly logLevel?: LogLevel;
  readonly logFormat: LogFormat;
}

type Environment = Readonly<Record<string, string | undefined>>;

const FACTS = ['founders', 'nodes', 'partitions', 'replicas'];
const SETTINGS = 'QUORATE_SETTINGS';
const ORDINAL_MAX = 999;
/** The first id that can be set explicitly. Lower ids belong to ordinals. */
const STATED_ID_MIN = 1_001;

/**
 * Reads and checks the settings.
 *
 * @throws ConfigError with the name of the variable and its bounds
 */
export async function containerSettings(environment: Environment): Promise<ContainerSettings> {
  const read = new Variables(environment);
  const ordinal = ordinalOf(read);
  const founders = read.integer('QUORATE_FOUNDERS', 1, NODES_MAX, 3);
  const ids = nodeIdsIn(read.text('QUORATE_NODE_IDS', ''));
  const nodeIdOf = (each: number): number => ids.get(each) ?? each + 1;
  const ports = {
    http: read.integer('QUORATE_HTTP_PORT', 1, 65_535, 8_100),
    peer: read.integer('QUORATE_PEER_PORT', 1, 65_535, 9_100),
    resp: read.integer('QUORATE_RESP_PORT', 1, 65_535, 10_100),
    grpc: read.integer('QUORATE_GRPC_PORT', 1, 65_535, 11_100),
  };
  const pattern = read.text('QUORATE_HOST');
  if (!pattern.includes('{ordinal}') && founders > 1)
    throw new ConfigError('QUORATE_HOST', 'must have {ordinal} in it, such as quorate-{ordinal}.quorate');
  const addressOf = (each: number): NodeAddress => {
    const host = pattern.replaceAll('{ordinal}', String(each));
    const at = (port: number): object => ({ host, port });
    const listeners = {
      http: at(ports.http),
      peer: at(ports.peer),
      resp: at(ports.resp),
      grpc: at(ports.grpc),
    };
    const node = { id: nodeIdOf(each), ...listeners };
    try {
      return validateNode(node, 'QUORATE_HOST');
    } catch (error) {
      throw error instanceof InvalidFieldError ? new ConfigError('QUORATE_HOST', error.bound) : error;
    }
  };
  addressOf(ordinal);
  const partitions = read.integerIfAny('QUORATE_PARTITIONS', 1, PARTITIONS_MAX);
  const restoreFrom = read.text('QUORATE_RESTORE_FROM', '');
  const zone = zoneOf(read.text('QUORATE_ZONE', ''));
  const { clusterId: ofSettings, ...local } = await localSettings(read.text(SETTINGS, ''));
  const clusterId = clusterIdOf(read.text('QUORATE_CLUSTER_ID', ''), ofSettings);
  const logLevel = read.text('QUORATE_LOG_LEVEL', '');
  return {
    ...(clusterId !== undefined && { clusterId }),
    ordinal,
    nodeId: nodeIdOf(ordinal),
    founders,
    ...(partitions !== undefined && { partitions }),
    ...(restoreFrom !== '' && { restoreFrom }),
    ...(zone !== undefined && { zone }),
    addressOf,
    listen: read.text('QUORATE_LISTEN', '0.0.0.0'),
    foundingPort: read.integer('QUORATE_FOUNDING_PORT', 1, 65_535, 7_100),
    data: read.text('QUORATE_DATA', '/data'),
    local,
    insecure: read.flag('QUORATE_INSECURE'),
    ...(logLevel !== '' && { logLevel: read.oneOf('QUORATE_LOG_LEVEL', LOG_LEVELS, 'info') }),
    logFormat: read.oneOf('QUORATE_LOG_FORMAT', LOG_FORMATS, 'auto'),
  };
}

/** The explicit ordinal, or else the one in the host name of a StatefulSet's pod, such as `quorate-2`. */
function ordinalOf(read: Variables): number {
  const [, ofName] = /-(\d{1,3})$/.exec(read.text('HOSTNAME', '')) ?? [];
  const stated = read.text('QUORATE_ORDINAL', ofName ?? '');
  if (/^\d{1,3}$/.test(stated)) return Number(stated);
  throw new ConfigError(
    'QUORATE_ORDINAL',
    `must be an integer from 0 to ${ORDINAL_MAX}, or HOSTNAME must end with one, such as quorate-2`,
  );
}

/**
 * Parses `1:1001,3:1002`: ordinal 1 is node 1001. A node whose disk was lost needs a new id, because ids are never
 * reused.
 */
export function nodeIdsIn(stated: string): ReadonlyMap<number, number> {
  const ids = new Map<number, number>();
  for (const part of stated.split(',').filter((each) => each.trim() !== '')) {
    const [, ordinal, id] = /^\s*(\d{1,3}):(\d{1,10})\s*$/.exec(part) ?? [];
    const isId = id !== undefined && Number(id) >= STATED_ID_MIN && Number(id) <= NODE_ID_MAX;
    if (!isId || [...ids.values()].includes(Number(id)))
      throw new ConfigError(
        'QUORATE_NODE_IDS',
        `must be a list of ordinal:id, each id once and from ${STATED_ID_MIN} on, such as 1:1001,3:1002`,
      );
    ids.set(Number(ordinal), Number(id));
  }
  return ids;
}

function zoneOf(stated: string): string | undefined {
  if (stated === '' || isLabel(stated)) return stated || undefined;
  throw new ConfigError('QUORATE_ZONE', LABEL_BOUND);
}

/**
 * The cluster id from the environment or from the settings, where `container secrets` writes it because certificates
 * contain it.
 */
function clusterIdOf(stated: string, ofSettings: unknown): string | undefined {
  if (ofSettings !== undefined && (typeof ofSettings !== 'string' || ofSettings === ''))
    throw new ConfigError(SETTINGS, 'must have text as clusterId');
  if (stated !== '' && ofSettings !== undefined && stated !== ofSettings)
    throw new ConfigError(
      'QUORATE_CLUSTER_ID',
      `must be ${ofSettings}, as in ${SETTINGS}, or unset: it is ${stated}`,
    );
  return stated === '' ? ofSettings : stated;
}

/** Reads all settings files as one. @param paths separated by commas */
async function localSettings(paths: string): Promise<Readonly<Record<string, unknown>>> {
  let all: Readonly<Record<string, unknown>> = {};
  for (const path of paths.split(',').flatMap((each) => each.trim() || [])) {
    const more = await settingsIn(path);
    const twice = Object.keys(more).find((key) => Object.hasOwn(all, key));
    if (twice !== undefined)
      throw new ConfigError(SETTINGS, `${path} must not hold ${twice}: another of these files has it`);
    all = { ...all, ...more };
  }
  return all;
}

async function settingsIn(path: string): Promise<Readonly<Record<string, unknown>>> {
  let text: string;
  let value: unknown;
  try {
    text = await readFile(path, 'utf8');
    value = JSON.parse(text);
  } catch (error) {
    throw new ConfigError(SETTINGS, `${path} cannot be read: ${error instanceof Error ? error.message : ''}`);
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    throw new ConfigError(SETTINGS, `${path} must hold an object: settings of cluster.json`);
  const [repeated] = repeatedKeysIn(text, value);
  if (repeated !== undefined)
    throw new ConfigError(
      SETTINGS,
      `${path} must have ${pathText(repeated)} once, and has it more than once`,
    );
  const fact = Object.keys(value).find((key) => FACTS.includes(key));
  if (fact !== undefined)
    throw new ConfigError(SETTINGS, `${path} must not hold ${fact}: the cluster is founded with it`);
  return value as Readonly<Record<string, unknown>>;
}

class Variables {
  readonly #environment: Environment;

  constructor(environment: Environment) {
    this.#environment = environment;
  }

  text(name: string, otherwise?: string): string {
    const value = this.#environment[name]?.trim() ?? '';
    if (value !== '') return value;
    if (otherwise === undefined) throw new ConfigError(name, 'must be set');
    return otherwise;
  }

  integer(name: string, min: number, max: number, otherwise: number): number {
    const text = this.text(name, String(otherwise));
    const value = /^\d{1,10}$/.test(text) ? Number(text) : Number.NaN;
    if (value >= min && value <= max) return value;
    throw new ConfigError(name, `must be an integer from ${min} to ${max}`);
  }

  integerIfAny(name: string, min: number, max: number): number | undefined {
    return this.text(name, '') === '' ? undefined : this.integer(name, min, max, min);
  }

  oneOf<const T extends string>(name: string, names: readonly T[], otherwise: T): T {
    const text = this.text(name, otherwise);
    const found = names.find((each) => each === text);
    if (found !== undefined) return found;
    throw new ConfigError(name, `must be one of ${names.join(', ')}`);
  }

  flag(name: string): boolean {
    const text = this.text(name, 'false');
    if (text === 'true' || text === 'false') return text === 'true';
    throw new ConfigError(name, 'must be true or false');
  }
}
