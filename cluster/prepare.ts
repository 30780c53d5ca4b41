/**
 * The first step of `npm start`: decides which nodes to start, of the stored cluster or of a new one, and refuses
 * options that do not fit. It starts no process.
 */
import { createServer } from 'node:net';
import { addressesOf, type HostPort, addressText } from '../src/api/node-address.ts';
import { type ClusterConfig, ConfigError, validateConfig } from '../src/config/config.ts';
import {
  createCluster,
  deleteCluster,
  localAddress,
  readCluster,
  writeCluster,
} from '../src/config/cluster-directory.ts';
import { AlreadyRunningError } from '../src/cli/explain-error.ts';
import { type LocalNodes, localNodes } from '../src/cli/local-nodes.ts';
import { listenerUrl } from '../src/cli/node-fetch.ts';
import { makeAllCertificates } from '../src/cli/make-certificates.ts';
import { type NewClusterOptions, newClusterConfig } from '../src/cli/new-cluster.ts';
import { deleteCertificates } from '../src/tls/certificate-files.ts';
import { isAnswering, reportFrom, trustNodes } from './processes.ts';

/** The options of `npm start`. */
export interface StartOptions extends NewClusterOptions {
  readonly fresh: boolean;
  readonly insecure?: boolean;
}

/**
 * Returns the nodes to start: those of the stored cluster, with the settings that the command line changes, or those of
 * a new one. Nothing is created, deleted or rewritten before it is certain that they can start, so a refusal changes
 * nothing. Facts of a cluster are never rewritten.
 *
 * @throws ConfigError, AlreadyRunningError
 */
export async function prepare(options: StartOptions): Promise<ClusterConfig> {
  const found = await readCluster(options.data);
  await trustNodes(options.data, found?.tls).catch((error: unknown) => {
    // The certificates of a cluster that will be deleted may be missing.
    if (!options.fresh) throw error;
  });
  const local = found === undefined ? undefined : await localNodes(options.data, found);
  // Refuse before anything is changed, because running nodes have these files open.
  if (found !== undefined && local !== undefined) await refuseIfRunning(onlyOf(found, local.here));
  const isNew = found === undefined || local === undefined || options.fresh;
  const config = isNew ? newClusterConfig(options) : changed(found, local, options);
  const started = isNew ? config : toStart(config, local, options.data);
  await refuseIfRunning(started);
  await assertPortsFree(started);
  if (options.fresh) await deleteCluster(options.data, async () => deleteCertificates(options.data));
  if (isNew) await create(options, config);
  else if (JSON.stringify(config) !== JSON.stringify(found)) await writeCluster(options.data, config);
  return started;
}

/** Creates the cluster, with certificates if it should have some. */
async function create({ data, tls }: StartOptions, config: ClusterConfig): Promise<void> {
  await createCluster(data, config);
  if (tls === true) await makeAllCertificates(data, config);
  await trustNodes(data, config.tls);
}

function changed(stored: ClusterConfig, local: LocalNodes, options: StartOptions): ClusterConfig {
  const { data, nodes, partitions } = options;
  const freshly = 'add --fresh to delete it, with all that was granted, and start over';
  if (nodes !== undefined && nodes !== stored.founders.length) {
    throw new ConfigError(
      '--nodes',
      `${nodes} does not fit the cluster in ${data}, which was created with ${stored.founders.length}: nodes are added ` +
        `with \`quorate join\` and \`quorate nodes add\`, and removed with \`quorate nodes remove\`; or ${freshly}`,
    );
  }
  if (partitions !== undefined && partitions !== stored.partitions) {
    throw new ConfigError(
      '--partitions',
      `${partitions} does not fit the cluster in ${data}, which has ${stored.partitions}, for good: ${freshly}`,
    );
  }
  for (const name of ['limit', 'window'] as const) {
    if (options[name] === undefined) continue;
    throw new ConfigError(
      `--${name}`,
      `is only for a new cluster: the one in ${data} has its rules already; start it, and change them with \`quorate rules apply\``,
    );
  }
  if (options.tls === true && stored.tls === undefined) {
    throw new ConfigError(
      '--tls',
      `is for a new cluster: make certificates for the one in ${data} with \`quorate certs\`, and name them in ` +
        `cluster.json; or ${freshly}`,
    );
  }
  return validateConfig({
    ...stored,
    nodes: addresses(stored, local, options),
  });
}

async function refuseIfRunning({ nodes, tls }: ClusterConfig): Promise<void> {
  const answers = await Promise.all(
    nodes.map(async (node) => {
      // Any answer counts: files in use must not be deleted.
      if (!(await isAnswering(node, tls))) return [];
      const report = await reportFrom(listenerUrl(node, tls));
      const id = report?.self.id ?? node.id;
      const pid = report?.nodes.find((other) => other.id === id)?.pid ?? 'unknown';
      return [`node ${id} at ${addressText(node.http)} (pid ${pid})`];
    }),
  );
  const running = answers.flat();
  if (running.length === 0) return;
  throw new AlreadyRunningError(
    `a cluster is already running on these ports: ${running.join(', ')}; stop it, or start another one with ` +
      `--data and --base-port`,
  );
}

/** The addresses of the nodes in this directory. Other nodes learn them even if they knew other ones. */
function addresses(
  { nodes }: ClusterConfig,
  { here }: LocalNodes,
  { basePort }: StartOptions,
): ClusterConfig['nodes'] {
  if (basePort === undefined) return nodes;
  const others = nodes.filter(({ id }) => !here.includes(id));
  return [...here.map((id) => localAddress(id, basePort)), ...others].sort((a, b) => a.id - b.id);
}

function onlyOf(config: ClusterConfig, ids: readonly number[]): ClusterConfig {
  return { ...config, nodes: config.nodes.filter(({ id }) => ids.includes(id)) };
}

/**
 * The nodes to start: those in the cluster's list that have a database in this directory. Prints why each of the others
 * is not started.
 */
function toStart(config: ClusterConfig, { here, members, removed }: LocalNodes, data: string): ClusterConfig {
  const ids = here.filter((id) => members.includes(id) && !removed.has(id));
  for (const id of here) {
    if (removed.has(id)) console.log(`node ${id} was removed from the cluster: not started`);
    else if (!members.includes(id)) {
      console.log(`node ${id} is prepared and does not belong to the cluster yet: not started`);
      console.log(`  run it with: npm run node -- ${id}, and add it with: npx quorate nodes add ${id}`);
    }
  }
  for (const { id } of config.nodes) {
    if (!members.includes(id) || here.includes(id)) continue;
    console.log(`node ${id} has no database in ${data}: not started`);
    console.log(`  if it was here it is lost, and has to be replaced by a node with a new id`);
  }
  const started = onlyOf(config, ids);
  const lost = ids.find((id) => !started.nodes.some((node) => node.id === id));
  if (lost !== undefined) {
    throw new ConfigError(
      'nodes',
      `of cluster.json have no address for node ${lost}, which should be started here`,
    );
  }
  if (ids.length === 0) throw new ConfigError(data, 'holds no node that belongs to the cluster');
  return started;
}

/**
 * Checks that the ports of a cluster are free, before any file of it is created. @throws the error of `listen` for the
 * first address that is taken or does not belong to this machine
 */
async function assertPortsFree(config: ClusterConfig): Promise<void> {
  for (const node of config.nodes) {
    for (const address of Object.values(addressesOf(node))) await listenOnce(address);
  }
}

async function listenOnce({ host, port }: HostPort): Promise<void> {
  const server = createServer();
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(port, host, resolve);
  });
  await new Promise((resolve) => server.close(resolve));
}
