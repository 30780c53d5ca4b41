/**
 * Finds the cluster that a command asks, and the certificates to trust: the one named with `--node` or `--data`,
 * otherwise the one in `./data`, otherwise 127.0.0.1:8101.
 */
import { type Command, Option } from 'commander';
import type { NodeAddress } from '../api/node-address.ts';
import { NO_NODE } from '../../raft/types.ts';
import { hasStore } from '../../storage/files.ts';
import { nodeDirectory, readCluster } from '../config/cluster-directory.ts';
import { type ClusterConfig, ConfigError } from '../config/config.ts';
import { resolvePath } from '../tls/credentials.ts';
import { type Failed, noAnswer } from './answer-of.ts';
import { askNode, ClusterCommandError, messageOf } from './ask-node.ts';
import { listenerUrl, readAuthorities, trustOnly } from './node-fetch.ts';
import { DATA_DEFAULT, DATA_WORDS, directoryOption, nodeOption } from './options.ts';

/** The options as given on the command line. */
export interface ClusterOptions {
  readonly node?: string;
  readonly data?: string;
  readonly ca?: string;
}

/** The cluster that a command asks. */
export interface AskedCluster {
  /** URLs of its nodes; those that live on this machine come first. */
  readonly urls: readonly string[];
  /** For messages: `the cluster in ./data`. */
  readonly name: string;
}

/** The option `--node`. */
export const NODE = [
  '--node <host:port>',
  'the node to ask, not those that cluster.json names (default: 127.0.0.1:8101 if there is no ./data)',
] as const;
/** The option `--ca`. */
export const CA = [
  '--ca <file>',
  'the CA of the nodes, which then use TLS (default: as in cluster.json)',
] as const;
const URL_DEFAULT = 'http://127.0.0.1:8101';
const READY_MILLIS_MAX = 2_000;

/** Adds the options of a command that asks a cluster. */
export function withCluster(command: Command): Command {
  return command
    .addOption(new Option(...NODE).argParser(nodeOption).conflicts('data'))
    .option(DATA_WORDS[0], `${DATA_WORDS[1]} (default: "${DATA_DEFAULT}")`, directoryOption)
    .option(...CA);
}

/** The cluster of the node at this URL. */
export function atNode(node: string): AskedCluster {
  return { urls: [node], name: 'the cluster' };
}

/**
 * Finds the cluster from the options and files. Sends nothing.
 *
 * @throws ConfigError if the named directory has no cluster, or its cluster.json is wrong
 */
export async function clusterOf({ node, data, ca }: ClusterOptions): Promise<AskedCluster> {
  if (ca !== undefined) trustOnly({ ca: [await readAuthorities(ca, '--ca')] });
  const spoken = (url: string): string => (ca === undefined ? url : url.replace(/^http:/, 'https:'));
  if (node !== undefined) return atNode(spoken(node));
  const directory = data ?? DATA_DEFAULT;
  const config = await readCluster(directory);
  if (config === undefined) {
    if (data === undefined) return atNode(spoken(URL_DEFAULT));
    throw new ConfigError('--data', `${data} holds no cluster.json; to ask a node, name it with --node`);
  }
  if (ca === undefined) await trustOwn(directory, config);
  const nodes = await hereFirst(directory, config);
  const urls = nodes.map((each) => spoken(listenerUrl(each, config.tls)));
  return { urls, name: `the cluster in ${directory}` };
}

/** If clients reach the nodes over TLS, trust the CA in the cluster's directory. */
async function trustOwn(directory: string, { tls }: ClusterConfig): Promise<void> {
  if (tls?.listeners !== true) return;
  trustOnly({ ca: [await readAuthorities(resolvePath(tls.ca, directory, NO_NODE), 'tls.ca')] });
}

/** Nodes on this machine first, because a node without tokens accepts changes only from its own machine. */
async function hereFirst(directory: string, { nodes }: ClusterConfig): Promise<readonly NodeAddress[]> {
  const here = new Set<NodeAddress>();
  for (const node of nodes) if (await hasStore(nodeDirectory(directory, node.id))) here.add(node);
  return [...here, ...nodes.filter((node) => !here.has(node))];
}

/**
 * Returns the URL of the node to ask: the first one that is ready, or else the first one that answers.
 *
 * @throws ClusterCommandError if none of several nodes answers
 */
export async function nodeOf(options: ClusterOptions): Promise<string> {
  const { urls, name } = await clusterOf(options);
  const [only, ...others] = urls;
  // With a single node there is no choice. The command itself reports if it does not answer.
  if (only !== undefined && others.length === 0) return only;
  const failed: Failed[] = [];
  let answering: string | undefined;
  let isRefused = false;
  for (const url of urls) {
    try {
      const { status, body } = await askNode(new URL('/readyz', url), READY_MILLIS_MAX);
      if (status === 200) return url;
      if (status !== 0) answering ??= url;
      failed.push({ url, problem: messageOf(body) ?? `status ${status}` });
    } catch (error) {
      if (!(error instanceof ClusterCommandError)) throw error;
      isRefused = true;
      failed.push({ url, problem: error.message });
    }
  }
  if (answering !== undefined) return answering;
  throw noAnswer(`no node of ${name} answers`, failed, isRefused);
}
