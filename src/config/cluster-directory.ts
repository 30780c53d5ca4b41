/**
 * A cluster on one machine as a directory: `cluster.json`, and `node-<id>/` with each node's database. Creating it
 * is explicit and happens once; a database that vanished later is never recreated (a node that forgot its votes
 * could break the promise).
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
/** Present while a cluster is being created: no node has run yet, so starting over is safe. */
const CREATING_FILE = 'cluster.json.creating';

export function nodeDirectory(directory: string, node: NodeId): string {
  return join(directory, `node-${node}`);
}

/**
 * The configuration stored in `directory`, or undefined if there is no cluster.
 *
 * @throws ConfigError if the file is damaged or holds values out of bounds
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

/** @param path of the file, for people. @throws ConfigError if the text is damaged or holds values out of bounds */
export function parseCluster(text: string, path: string): ClusterConfig {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    throw new ConfigError(path, `is not JSON: ${String(error)}`);
  }
  const [repeated] = repeatedKeysIn(text, value);
  if (repeated !== undefined)
    throw new ConfigError(
      `${path}: ${pathText(repeated)}`,
      'must be there once, and is there more than once',
    );
  try {
    return validateConfig(value);
  } catch (error) {
    if (error instanceof ConfigError) throw new ConfigError(`${path}: ${error.field}`, error.bound);
    throw error;
  }
}

/** Replaces `cluster.json` in one step. What is fixed for good must be unchanged, or no node starts any more. */
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
 * Creates the databases of all nodes, then `cluster.json`. Starts over if an earlier attempt was cut off.
 *
 * @param fill puts into the database of one founder, which is empty, what its node is to begin with. Also called again
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
  // One step ends the creation: the mark becomes the configuration, so that none is left where nodes have run.
  await replaceFile(join(directory, CREATING_FILE), join(directory, CLUSTER_FILE), config);
}

/**
 * Deletes what `createCluster` and the nodes made in `directory`, and nothing else. A node that stands still runs, too: what
 * it grants when it goes on would be on no disk.
 *
 * @param also deletes what else belongs to it, once it is certain that none runs
 * @throws StoreLockedError if one does; then nothing is deleted
 */
export async function deleteCluster(directory: string, also?: () => Promise<void>): Promise<void> {
  const names: string[] = await readdir(directory).catch(() => []);
  // A folder that merely has files of the same names is none of ours.
  if (!names.includes(CLUSTER_FILE) && !names.includes(CREATING_FILE)) return also?.();
  const ours = names.filter((name) => /^(node-\d+|logs|cluster\.json(\.new|\.creating)?)$/.test(name));
  // The configuration goes last, so that an interrupted deletion is recognised as the rest of a cluster.
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

export interface LocalClusterOptions {
  readonly nodes: number;
  /** Default: `PARTITIONS_PER_NODE` for each node. */
  readonly partitions?: number;
  readonly limit: number;
  readonly windowMillis: number;
  readonly basePort: number;
}

/**
 * Each partition has a log of its own, and the more logs, the fewer requests share an entry, a frame and a synced write
 * (measured in bench/RESULTS.md). Two for each node let a cluster grow to twice its size before a node has nothing to lead.
 */
export const PARTITIONS_PER_NODE = 2;

export const LOCAL_DEFAULTS = {
  nodes: 3,
  limit: 100,
  windowMillis: 60_000,
  basePort: 8_100,
} as const satisfies LocalClusterOptions;

/** HTTP on basePort + id, peers on basePort + 1000 + id, the Redis protocol on basePort + 2000 + id, gRPC on basePort + 3000 + id, on loopback. */
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

export function defaultRule(limit: number, windowMillis: number): Rule {
  return { id: 'default', limit, windowMillis, clock: 'request' };
}

/** A new local cluster: three copies of each partition, one rule. @throws ConfigError naming the field and its bound */
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
