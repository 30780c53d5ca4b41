/**
 * `quorate join`: prepares a directory for a node that joins a running cluster: an empty database, and an entry in the
 * local `cluster.json`. It can be repeated after an interruption, and never recreates a database that existed.
 */
import { bootstrapStore } from '../../storage/bootstrap-store.ts';
import { hasStore } from '../../storage/files.ts';
import { openStore } from '../../storage/open-store.ts';
import { nodeDirectory, readCluster, writeCluster } from '../config/cluster-directory.ts';
import { drawIncarnation, factsOf } from '../config/cluster-facts.ts';
import { addressesOf, addressText, type HostPort, type NodeAddress } from '../api/node-address.ts';
import { type ClusterConfig, ConfigError, validateConfig } from '../config/config.ts';
import { localNodes } from './local-nodes.ts';
import type { NodeId } from '../../raft/types.ts';

/** The lines to print. */
export type JoinReport = readonly string[];

/**
 * Prepares the node.
 *
 * @throws ConfigError if the id or the addresses are taken, and errors of the database
 */
export async function joinCluster(directory: string, node: NodeAddress): Promise<JoinReport> {
  const config = await readCluster(directory);
  if (config === undefined) {
    throw new ConfigError(directory, 'holds no cluster.json; copy that of a node of the cluster there');
  }
  const { id } = node;
  if (config.founders.some((founder) => founder.id === id)) {
    throw new ConfigError(
      'id',
      `${id} is one of the nodes that the cluster was created with; take a new one`,
    );
  }
  const database = nodeDirectory(directory, id);
  const hasDatabase = await hasStore(database);
  const listed = config.nodes.find((other) => other.id === id);
  if (listed !== undefined) return repeated(node, listed, hasDatabase);
  const others = await withoutClashes(directory, config, node);
  const joined = validateConfig({ ...config, nodes: [...others.kept, node] });
  if (hasDatabase) await checkOwn(database, id, config);
  else await bootstrapStore(database, { nodeId: id, incarnation: drawIncarnation(), facts: factsOf(config) });
  // Last, because the entry in the file means that the database was created.
  await writeCluster(directory, joined);
  const replaced = others.dropped.map(
    (other) => `node ${other.id} was at that address; cluster.json does not list it any more`,
  );
  // The labels become known to the cluster with `nodes add`.
  const { http, peer, zone, host } = node;
  const labels = `${zone === undefined ? '' : ` --zone ${zone}`}${host === undefined ? '' : ` --host ${host}`}`;
  const add = `quorate nodes add ${id} --http ${addressText(http)} --peer ${addressText(peer)}${labels}`;
  return [...replaced, `node ${id} is prepared: run it, then add it with \`${add}\``];
}

/** The file lists the node, so its database was complete. If the database is missing now, its promises are lost. */
function repeated(node: NodeAddress, listed: NodeAddress, hasDatabase: boolean): JoinReport {
  if (!hasDatabase) {
    throw new ConfigError(
      'id',
      `${node.id} is listed in cluster.json, and its database is gone; take a new one`,
    );
  }
  const named = addressesOf(listed);
  const asked = Object.entries(addressesOf(node));
  if (asked.length === Object.keys(named).length && asked.every(([name, at]) => isSame(at, named[name]))) {
    return [`node ${node.id} is prepared already`];
  }
  throw new ConfigError(
    'id',
    `${node.id} is prepared already, at ${addressesText(listed, 'and')}; edit cluster.json to move it`,
  );
}

/**
 * The database exists, but the file does not list the node: an earlier join was interrupted, or the file is a new copy.
 */
async function checkOwn(database: string, nodeId: NodeId, config: ClusterConfig): Promise<void> {
  const store = await openStore(database, { nodeId, facts: factsOf(config) });
  await store.close();
}

/**
 * Returns the other nodes of the file. A new machine may reuse the address of a dead one, which is then removed from
 * the file, but not the address of a node that lives in this directory.
 */
async function withoutClashes(
  directory: string,
  config: ClusterConfig,
  node: NodeAddress,
): Promise<{ readonly kept: readonly NodeAddress[]; readonly dropped: readonly NodeAddress[] }> {
  const clashes = (other: NodeAddress): boolean =>
    listOf(node).some((own) => listOf(other).some((address) => isSame(own, address)));
  const { nodes } = config;
  const dropped = nodes.filter(clashes);
  const { here, removed } = await localNodes(directory, config);
  for (const other of dropped) {
    if (removed.has(other.id) || !here.includes(other.id)) continue;
    throw new ConfigError(
      'address',
      `${addressesText(node, 'or')} belongs to node ${other.id}, which lives in this directory; take another one`,
    );
  }
  return { kept: nodes.filter((other) => !clashes(other)), dropped };
}

function listOf(node: NodeAddress): readonly HostPort[] {
  return Object.values(addressesOf(node));
}

function isSame(a: HostPort, b: HostPort | undefined): boolean {
  return a.host === b?.host && a.port === b.port;
}

function addressesText(node: NodeAddress, word: 'and' | 'or'): string {
  const addresses = listOf(node).map(addressText);
  return addresses.join(` ${word} `);
}
