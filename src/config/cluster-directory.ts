/**
 * Stores a cluster on one machine in a directory: `cluster.json`, and `node-<id>/` with the database of each node.
 * A cluster is created explicitly and once. A database that vanished later is never recreated, as a node that has
 * forgotten its votes could break the promise.
 */
import { randomUUID } from 'node:crypto';
import { mkdir, readdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { bootstrapStore } from '../../storage/bootstrap-store.ts';
import { naming } from '../../storage/file-errors.ts';
import { type DirectoryLock, lockDirectory } from '../../storage/lock.ts';
import { drawIncarnation, factsOf } from './cluster-facts.ts';
import { type ClusterConfig, ConfigError, NODES_MAX, TIMING_DEFAULTS, validateConfig } from './config.ts';
import type { NodeAddress } from '../api/node-address.ts';
import { pathText, repeatedKeysIn } from '../api/repeated-keys.ts';
import type { NodeId } from '../../raft/types.ts';
import {
  CLOCK_DRIFT_PPM_DEFAULT,
  PARTITION_BYTES_DEFAULT,
  REQUEST_ID_HORIZON_MILLIS_DEFAULT,
} from '../limiter/rules.ts';
import type { Rule } from '../api/rule.ts';

const CLUSTER_FILE = 'cluster.json';
/** Exists while a cluster is being created. No node has run yet, so starting over is safe. */
const CREATING_FILE = 'cluster.json.creating';

/** The directory of a node's database. */
export function nodeDirectory(directory: string, node: NodeId): string {
  return join(directory, `node-${node}`);
}

/**
 * Reads the configuration in `directory`; undefined if there is no cluster.
 *
 * @throws ConfigError if the file is damaged or a value is out of range
 */
export async function readCluster(directory: string): Promise<ClusterConfig | undefined> {
  const path = join(directory, CLUSTER_FILE);
  let text: string;
  try {
    text = await naming(path, () => readFile(path, 'utf8'));
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return undefined;
    throw error;
  }
  return parseCluster(text, path);
}

/**
 * Parses a configuration. @param path of the file, for messages. @throws ConfigError if it is damaged or a value is
 * out of range
 */
export function parseCluster(text: string, path: string): ClusterConfig {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    throw new ConfigError(path, `is not JSON: ${String(error)}`);
  }
  const [repeated] = repeatedKeysIn(text, value);
  if (repeated !== undefined)
    throw new ConfigError(`${path}: ${pathText(repeated)}`, 'must appear once, but appears more than once');
  try {
    return validateConfig(value);
  } catch (error) {
    if (error instanceof ConfigError) throw new ConfigError(`${path}: ${error.field}`, error.bound);
    throw error;
  }
}

/** Replaces `cluster.json` atomically. The facts of the cluster must be unchanged, or no node will start. */
export async function writeCluster(directory: string, config: ClusterConfig): Promise<void> {
  const path = join(directory, CLUSTER_FILE);
  await replaceFile(`${path}.new`, path, config);
}

async function replaceFile(temporary: string, path: string, config: ClusterConfig): Promise<void> {
  await naming(temporary, () =>
    writeFile(temporary, `${JSON.stringify(config, null, 2)}\n`, { flush: true }),
  );
  await rename(temporary, path);
}

/**
 * Creates the databases of all nodes, then `cluster.json`. If an earlier attempt was interrupted, it starts over.
 *
 * @param fill fills the empty database of one founder; it may be called again after an interruption
 */
export async function createCluster(
  directory: string,
  config: ClusterConfig,
  fill?: (database: string, node: NodeId) => Promise<void>,
): Promise<void> {
  await mkdir(directory, { recursive: true });
  const names = await readdir(directory);
  if (names.includes(CLUSTER_FILE))
    throw new ConfigError(directory, 'holds a cluster already; use another directory');
  const databases = names.filter((name) => /^node-\d+$/.test(name));
  if (databases.length > 0 && !names.includes(CREATING_FILE)) {
    throw new ConfigError(
      directory,
      `holds ${databases.join(', ')} but no ${CLUSTER_FILE}; use another directory`,
    );
  }
  await writeFile(join(directory, CREATING_FILE), '', { flush: true });
  for (const name of databases) await rm(join(directory, name), { recursive: true });
  const facts = factsOf(config);
  for (const { id: nodeId, incarnation } of facts.founders) {
    const database = nodeDirectory(directory, nodeId);
    await bootstrapStore(database, { nodeId, incarnation, facts });
    await fill?.(database, nodeId);
  }
  // The mark is renamed to become the configuration, so that the mark cannot exist where nodes have run.
  await replaceFile(join(directory, CREATING_FILE), join(directory, CLUSTER_FILE), config);
}

/**
 * Deletes what `createCluster` and the nodes made in `directory`, and nothing else. A paused process counts as
 * running: what it grants when it resumes would be on no disk.
 *
 * @param also deletes further files of the cluster, once it is certain that no node runs
 * @throws StoreLockedError if a node runs; then nothing is deleted
 */
export async function deleteCluster(directory: string, also?: () => Promise<void>): Promise<void> {
  const names: string[] = await readdir(directory).catch(() => []);
  // Without either file this is some other directory whose files have similar names.
  if (!names.includes(CLUSTER_FILE) && !names.includes(CREATING_FILE)) return also?.();
  const ours = names.filter((name) => /^(node-\d+|logs|cluster\.json(\.new|\.creating)?)$/.test(name));
  // The configuration is deleted last, so that an interrupted deletion can be recognised and continued.
  ours.sort((a, b) => Number(a.startsWith(CLUSTER_FILE)) - Number(b.startsWith(CLUSTER_FILE)));
  const locks: DirectoryLock[] = [];
  try {
    for (const name of ours)
      if (name.startsWith('node-')) locks.push(await lockDirectory(join(directory, name)));
    await also?.();
    for (const name of ours) await rm(join(directory, name), { recursive: true });
  } finally {
    for (const lock of locks) await lock.release();
  }
}

/** Options of a local cluster. */
export interface LocalClusterOptions {
  readonly nodes: number;
  /** Default: `PARTITIONS_PER_NODE` for each node. */
  readonly partitions?: number;
  readonly limit: number;
  readonly windowMillis: number;
  readonly basePort: number;
}

/**
 * Partitions per node by default. Each partition has its own log, and the more logs there are, the fewer requests
 * share an entry, a frame and a synced write (measured in bench/RESULTS.md). With two per node a cluster can double
 * in size before a node has nothing to lead.
 */
export const PARTITIONS_PER_NODE = 2;

/** Defaults of a local cluster. */
export const LOCAL_DEFAULTS = {
  nodes: 3,
  limit: 100,
  windowMillis: 60_000,
  basePort: 8_100,
} as const satisfies LocalClusterOptions;

/**
 * The addresses of a local node: HTTP on basePort + id, peers on basePort + 1000 + id, RESP on basePort + 2000 +
 * id, gRPC on basePort + 3000 + id, all on loopback.
 */
export function localAddress(id: NodeId, basePort: number): NodeAddress {
  const host = '127.0.0.1';
  return {
    id,
    http: { host, port: basePort + id },
    peer: { host, port: basePort + 1_000 + id },
    resp: { host, port: basePort + 2_000 + id },
    grpc: { host, port: basePort + 3_000 + id },
  };
}

/** The single rule of a local cluster. */
export function defaultRule(limit: number, windowMillis: number): Rule {
  return { id: 'default', limit, windowMillis, clock: 'request' };
}

/**
 * The configuration of a new local cluster: three replicas of each partition, one rule. @throws ConfigError naming
 * the field and its range
 */
export function localConfig(options: LocalClusterOptions): ClusterConfig {
  if (options.nodes > NODES_MAX) throw new ConfigError('nodes', `must be at most ${NODES_MAX}`);
  const ids = Array.from({ length: options.nodes }, (_, i) => i + 1);
  return validateConfig({
    clusterId: randomUUID(),
    founders: ids.map((id) => ({ id, incarnation: drawIncarnation() })),
    nodes: ids.map((id) => localAddress(id, options.basePort)),
    partitions: options.partitions ?? PARTITIONS_PER_NODE * options.nodes,
    replicas: Math.min(3, options.nodes),
    rules: {
      rules: [defaultRule(options.limit, options.windowMillis)],
      requestIdHorizonMillis: REQUEST_ID_HORIZON_MILLIS_DEFAULT,
      clockDriftPpm: CLOCK_DRIFT_PPM_DEFAULT,
      partitionBytesMax: PARTITION_BYTES_DEFAULT,
    },
    timing: TIMING_DEFAULTS,
  });
}
