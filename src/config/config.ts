/**
 * The configuration of a cluster as stored in `cluster.json`, and its validation. The facts in it must be the same
 * on every node (cluster-facts.ts); addresses and settings of the machine may differ.
 */
import { integerAt, InvalidFieldError, objectAt } from '../api/fields.ts';
import {
  addressesOf,
  addressText,
  NODE_ID_MAX,
  type NodeAddress,
  validateNode,
} from '../api/node-address.ts';
import { type HttpSettings, validateHttpSettings } from './http-settings.ts';
import { type RlsSettings, validateRlsSettings } from '../rls/rls-settings.ts';
import { groupMillisMax, InvalidRuleError, type RuleTable, validateRuleTable } from '../limiter/rules.ts';
import { type Founder, INCARNATION } from '../../storage/identity.ts';
import { DEFAULT_FREE_FLOOR_BYTES } from '../../storage/free-space.ts';
import { type TlsSettings, validateTlsSettings } from './tls-settings.ts';
import { type TokenEntry, TOKENS_MAX, validateTokenEntry } from '../api/token.ts';

/** The contents of `cluster.json`. */
export interface ClusterConfig {
  /** Id of the cluster, in every frame and database. A node refuses those of another cluster. */
  readonly clusterId: string;
  /** The nodes that the cluster was created with, its first voters. Never changes, unlike the members. */
  readonly founders: readonly Founder[];
  /**
   * Where the nodes of this machine listen, and where others are found. Membership is replicated and not defined
   * here: members may be missing, and former ones may be listed.
   */
  readonly nodes: readonly NodeAddress[];
  /** Number of Raft groups that the users are spread over. Fixed at creation. */
  readonly partitions: number;
  /** Replicas of each partition. */
  readonly replicas: number;
  /** Version 1 of the rules, for the creation of the cluster. Later versions are in group 0. */
  readonly rules: FirstRules;
  readonly timing: Timing;
  /** A node with less free disk space than this, in bytes, proposes nothing. */
  readonly freeFloorBytes: number;
  /** Limit for the state of all partitions of a node, in bytes. Absent: derived from the memory of the machine. */
  readonly stateBytesMax?: number;
  /**
   * A partition writes a snapshot after this many bytes of log, or after as many as its last snapshot has, and
   * keeps a quarter of that log for followers. Absent: derived from the memory of the machine.
   */
  readonly snapshotEveryBytes?: number;
  /**
   * `spread`: each partition is always led where its placement says. `gather` (default): leaders gather on one node
   * as long as it has headroom.
   */
  readonly leaders?: 'gather' | 'spread';
  /** Absent: `LOG_LEVEL_DEFAULT`. */
  readonly logLevel?: LogLevel;
  /** Settings of the HTTP listener. Absent: `HTTP_SETTINGS_DEFAULTS`. */
  readonly http?: HttpSettings;
  /** Settings of Envoy's rate limit protocol. Absent: `RLS_SETTINGS_DEFAULTS`. */
  readonly rls?: RlsSettings;
  /** Absent: connections are not encrypted, and anybody who reaches a listener may use it, and pose as a peer. */
  readonly tls?: TlsSettings;
  /** Tokens that are valid in addition to those in group 0, even before this node knows any of those. */
  readonly tokens?: readonly TokenEntry[];
}

/** A rule table without a version. */
export type FirstRules = Omit<RuleTable, 'version'>;

/** Log levels, from most to least output. */
export const LOG_LEVELS = ['trace', 'debug', 'info', 'warn', 'error', 'fatal'] as const;
export type LogLevel = (typeof LOG_LEVELS)[number];
/** The level where none is given. */
export const LOG_LEVEL_DEFAULT: LogLevel = 'info';

const STATE_BYTES_MIN = 65_536;
const SNAPSHOT_EVERY_BYTES_MIN = 1_024;
const SNAPSHOT_EVERY_BYTES_MAX = 1 << 30;

/** Time settings, all in milliseconds. */
export interface Timing {
  readonly tickMillis: number;
  readonly heartbeatMillis: number;
  /** Shortest election timeout; the actual one is drawn from one to two times this. */
  readonly electionMillis: number;
  /** A request is answered by then, if necessary with "denied, unavailable". */
  readonly requestDeadlineMillis: number;
}

/** The time settings where none are given. */
export const TIMING_DEFAULTS: Timing = {
  tickMillis: 10,
  heartbeatMillis: 50,
  electionMillis: 300,
  requestDeadlineMillis: 1_000,
};

/** The time settings of Raft, in ticks. */
export function ticksOf(timing: Timing): { readonly heartbeatTicks: number; readonly electionTicks: number } {
  const { tickMillis, heartbeatMillis, electionMillis } = timing;
  return {
    heartbeatTicks: Math.ceil(heartbeatMillis / tickMillis),
    electionTicks: Math.ceil(electionMillis / tickMillis),
  };
}

/** The maximum number of partitions of a cluster. */
export const PARTITIONS_MAX = 4_096;
/** The maximum number of nodes of a cluster. */
export const NODES_MAX = 64;
/** The maximum number of addresses in a file, including those of former nodes. */
const ADDRESSES_MAX = 4 * NODES_MAX;
const REPLICAS_MAX = 7;

/** The configuration is not usable. `field` is the path of the offending value. */
export class ConfigError extends Error {
  readonly code = 'CONFIG';
  readonly field: string;
  /** The allowed range, or the reason of the refusal; follows the field in a sentence. */
  readonly bound: string;

  constructor(field: string, bound: string) {
    super(`${field} ${bound}`);
    this.name = 'ConfigError';
    this.field = field;
    this.bound = bound;
  }
}

const CONFIG_KEYS = [
  'clusterId',
  'founders',
  'nodes',
  'partitions',
  'replicas',
  'rules',
  'timing',
  'freeFloorBytes',
  'stateBytesMax',
  'snapshotEveryBytes',
  'leaders',
  'logLevel',
  'http',
  'rls',
  'tls',
  'tokens',
] as const satisfies readonly (keyof ClusterConfig)[];
const RULE_TABLE_KEYS = [
  'rules',
  'requestIdHorizonMillis',
  'clockDriftPpm',
  'partitionBytesMax',
] as const satisfies readonly (keyof FirstRules)[];

/**
 * Checks a parsed `cluster.json`. Optional: `timing` and `http`, as a whole or in part, `freeFloorBytes`,
 * `stateBytesMax`, `snapshotEveryBytes`, `leaders`, `logLevel`, `rls`, `tls` and `tokens`. Unknown fields are
 * refused, as a misspelt setting must not silently be ignored.
 *
 * @throws ConfigError naming the field and its range
 */
export function validateConfig(value: unknown): ClusterConfig {
  try {
    return checkedConfig(value);
  } catch (error) {
    if (error instanceof InvalidFieldError) throw new ConfigError(error.field, error.bound);
    throw error;
  }
}

function checkedConfig(value: unknown): ClusterConfig {
  const root = objectAt(value, 'config', CONFIG_KEYS, (key) => key);
  const clusterId = root['clusterId'];
  if (typeof clusterId !== 'string' || clusterId.length === 0 || clusterId.length > 128) {
    throw new ConfigError('clusterId', 'must be a string of 1 to 128 characters');
  }
  const nodes = validateNodes(root['nodes']);
  const partitions = integerAt(root['partitions'], 'partitions', 1, PARTITIONS_MAX);
  const founders = validateFounders(root['founders']);
  const replicas = integerAt(root['replicas'], 'replicas', 1, Math.min(REPLICAS_MAX, founders.length));
  const rules = validateRules(root['rules']);
  const timing = validateTiming(root['timing']);
  checkHorizon(rules, timing);
  const { stateBytesMax, snapshotEveryBytes, leaders, logLevel, http, rls, tls, tokens } = root;
  if (leaders !== undefined && leaders !== 'gather' && leaders !== 'spread')
    throw new ConfigError('leaders', "must be 'gather' or 'spread'");
  return {
    clusterId,
    founders,
    nodes,
    partitions,
    replicas,
    rules,
    timing,
    ...(stateBytesMax !== undefined && {
      stateBytesMax: integerAt(stateBytesMax, 'stateBytesMax', STATE_BYTES_MIN, Number.MAX_SAFE_INTEGER),
    }),
    ...(snapshotEveryBytes !== undefined && {
      snapshotEveryBytes: integerAt(
        snapshotEveryBytes,
        'snapshotEveryBytes',
        SNAPSHOT_EVERY_BYTES_MIN,
        SNAPSHOT_EVERY_BYTES_MAX,
      ),
    }),
    ...(leaders !== undefined && { leaders }),
    ...(logLevel !== undefined && { logLevel: validateLogLevel(logLevel) }),
    ...(http !== undefined && { http: validateHttpSettings(http, 'http') }),
    ...(rls !== undefined && { rls: validateRlsSettings(rls, 'rls') }),
    ...(tls !== undefined && { tls: validateTlsSettings(tls, 'tls') }),
    ...(tokens !== undefined && { tokens: validateTokens(tokens) }),
    freeFloorBytes: integerAt(
      root['freeFloorBytes'] ?? DEFAULT_FREE_FLOOR_BYTES,
      'freeFloorBytes',
      0,
      Number.MAX_SAFE_INTEGER,
    ),
  };
}

function validateLogLevel(value: unknown): LogLevel {
  const level = LOG_LEVELS.find((each) => each === value);
  if (level !== undefined) return level;
  throw new ConfigError('logLevel', `must be one of ${LOG_LEVELS.join(', ')}`);
}

function validateTokens(value: unknown): TokenEntry[] {
  if (!Array.isArray(value) || value.length > TOKENS_MAX)
    throw new ConfigError('tokens', `must be an array of at most ${TOKENS_MAX} tokens`);
  const seen = new Set<string>();
  return value.map((item: unknown, i) => {
    const token = validateTokenEntry(item, `tokens[${i}]`);
    if (seen.has(token.id))
      throw new ConfigError(`tokens[${i}].id`, `must be unique, but ${token.id} was used before`);
    seen.add(token.id);
    return token;
  });
}

function validateNodes(value: unknown): NodeAddress[] {
  if (!Array.isArray(value) || value.length === 0 || value.length > ADDRESSES_MAX) {
    throw new ConfigError('nodes', `must be an array of 1 to ${ADDRESSES_MAX} nodes`);
  }
  const seen = new Set<number>();
  const addresses = new Set<string>();
  return value.map((item: unknown, i) => {
    const path = `nodes[${i}]`;
    const node = validateNode(item, path);
    const { id } = node;
    if (seen.has(id)) throw new ConfigError(`${path}.id`, `must be unique, but ${id} was used before`);
    seen.add(id);
    for (const [name, known] of Object.entries(addressesOf(node))) {
      const address = addressText(known);
      if (addresses.has(address))
        throw new ConfigError(`${path}.${name}`, `must be unique, but ${address} was used before`);
      // With port 0 the system chooses.
      if (known.port !== 0) addresses.add(address);
    }
    return node;
  });
}

function validateFounders(value: unknown): Founder[] {
  if (!Array.isArray(value) || value.length === 0 || value.length > NODES_MAX) {
    throw new ConfigError(
      'founders',
      `must be an array of the 1 to ${NODES_MAX} nodes that the cluster was created with`,
    );
  }
  const seen = new Set<number>();
  return value.map((item: unknown, i) => {
    const founder = objectAt(item, `founders[${i}]`, ['id', 'incarnation']);
    const id = integerAt(founder['id'], `founders[${i}].id`, 1, NODE_ID_MAX);
    if (seen.has(id)) throw new ConfigError(`founders[${i}].id`, `must be unique, but ${id} was used before`);
    seen.add(id);
    const incarnation = founder['incarnation'];
    if (typeof incarnation !== 'string' || !INCARNATION.test(incarnation))
      throw new ConfigError(`founders[${i}].incarnation`, 'must be 32 hexadecimal digits in lower case');
    return { id, incarnation };
  });
}

function validateRules(value: unknown): FirstRules {
  try {
    const { version: _, ...first } = validateRuleTable({
      ...objectAt(value, 'rules', RULE_TABLE_KEYS),
      version: 1,
    });
    return first;
  } catch (error) {
    if (error instanceof InvalidRuleError) {
      throw new ConfigError(`rules.${error.field}`, error.message.slice(error.field.length + 1));
    }
    throw error;
  }
}

/**
 * Checks that request ids are remembered as long as a request may be repeated: up to two deadlines after its grant,
 * in group time. The router repeats until the deadline; a client that got "unavailable" then repeats once more, and
 * gets its answer a deadline later. With a shorter horizon that retry would be charged again.
 *
 * @throws ConfigError if the horizon is too short
 */
export function checkHorizon({ requestIdHorizonMillis, clockDriftPpm }: FirstRules, timing: Timing): void {
  const { requestDeadlineMillis } = timing;
  const neededMillis = groupMillisMax(2 * requestDeadlineMillis, clockDriftPpm);
  if (requestIdHorizonMillis >= neededMillis) return;
  throw new ConfigError(
    'rules.requestIdHorizonMillis',
    `must be at least ${neededMillis}, twice timing.requestDeadlineMillis (${requestDeadlineMillis}) and clock drift, ` +
      `but is ${requestIdHorizonMillis}: retries would be charged again`,
  );
}

function validateTiming(value: unknown): Timing {
  const timing = value === undefined ? {} : objectAt(value, 'timing', Object.keys(TIMING_DEFAULTS));
  const read = (name: keyof Timing, min: number, max: number): number =>
    integerAt(timing[name] ?? TIMING_DEFAULTS[name], `timing.${name}`, min, max);
  const tickMillis = read('tickMillis', 1, 1_000);
  const heartbeatMillis = read('heartbeatMillis', tickMillis, 10_000);
  const electionMillis = read('electionMillis', 2 * heartbeatMillis, 60_000);
  return {
    tickMillis,
    heartbeatMillis,
    electionMillis,
    requestDeadlineMillis: read('requestDeadlineMillis', tickMillis, 60_000),
  };
}
