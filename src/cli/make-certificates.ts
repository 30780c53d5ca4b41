/** Makes the certificates of a cluster on this machine: its CA, and those of its nodes. It prints nothing. */
import { X509Certificate } from 'node:crypto';
import { addressesOf, type NodeAddress } from '../api/node-address.ts';
import { readCluster } from '../config/cluster-directory.ts';
import { type ClusterConfig, ConfigError } from '../config/config.ts';
import { sayable } from '../node/peer-addresses.ts';
import {
  authorityFiles,
  type IssuedFiles,
  readAuthority,
  storeAuthority,
  storeNodeCertificate,
} from '../tls/certificate-files.ts';

export const NODE_DAYS_DEFAULT = 365;
export const NODE_DAYS_MAX = 3_650;

export interface IssueOptions {
  readonly data: string;
  readonly id: number;
  /** Names and addresses; empty: those that cluster.json has for the node. */
  readonly hosts: readonly string[];
  readonly days: number;
  /** Where the key of the CA was moved to. Absent: it is where it was made. */
  readonly caKey?: string;
}

export interface IssuedCertificate {
  readonly files: IssuedFiles;
  readonly hosts: readonly string[];
  /** When it expires. */
  readonly until: Date;
}

/** @throws ConfigError if there is one already, or no cluster */
export async function makeAuthority(data: string): Promise<IssuedFiles> {
  const { clusterId } = await clusterIn(data);
  return makeAuthorityFor(data, clusterId);
}

/** @throws ConfigError if there is one already */
export async function makeAuthorityFor(directory: string, clusterId: string): Promise<IssuedFiles> {
  const { issueAuthority } = await import('../tls/issue.ts');
  return storeAuthority(directory, await issueAuthority(clusterId, Date.now()));
}

/** @throws ConfigError if there is no cluster or no CA, or this CA cannot sign */
export async function makeNodeCertificate({ data, ...options }: IssueOptions): Promise<IssuedCertificate> {
  const { clusterId, nodes } = await clusterIn(data);
  const hosts =
    options.hosts.length > 0 ? options.hosts : hostsOf(nodes.find((node) => node.id === options.id));
  return issueFor(data, clusterId, { ...options, hosts });
}

/** @throws ConfigError if there is no CA in `directory`, or this CA cannot sign */
export async function issueFor(
  directory: string,
  clusterId: string,
  { id, hosts, days, caKey }: Omit<IssueOptions, 'data'>,
): Promise<IssuedCertificate> {
  const ca = await readAuthority(directory, caKey);
  const { issueNodeCertificate } = await import('../tls/issue.ts');
  const init = { ca, clusterId, nodeId: id, hosts, days, nowMillis: Date.now() };
  const issued = await issueNodeCertificate(init).catch(() => {
    // Its own words could tell of the key.
    throw new ConfigError(
      'the CA',
      'cannot sign: its key must be one of the curve P-256, in PEM and without a passphrase',
    );
  });
  const until = new Date(new X509Certificate(issued.cert).validTo);
  return { files: await storeNodeCertificate(directory, id, issued), hosts, until };
}

/** The CA, and a certificate for each node that the file lists. */
export async function makeAllCertificates(data: string, { nodes }: ClusterConfig): Promise<void> {
  await makeAuthority(data);
  for (const { id } of nodes) await makeNodeCertificate({ data, id, hosts: [], days: NODE_DAYS_DEFAULT });
}

/** What to do with the key of a new CA, for people. */
export function keepApart(data: string): string {
  const { key } = authorityFiles(data);
  return (
    `the key of the CA is ${key}: whoever has it can pose as any node. Move it to where no node runs; ` +
    'nodes need only the folder certs, and `certs issue --ca-key` reads the key from elsewhere'
  );
}

async function clusterIn(data: string): Promise<ClusterConfig> {
  const config = await readCluster(data);
  if (config !== undefined) return config;
  throw new ConfigError(data, 'holds no cluster.json, whose cluster id belongs into the certificates');
}

/** Where the file says that others find it. */
function hostsOf(node: NodeAddress | undefined): string[] {
  if (node === undefined) return [];
  const addresses = Object.values(addressesOf(node));
  return [
    ...new Set(
      addresses.filter(({ host, port }) => sayable({ host, port: port || 1 })).map(({ host }) => host),
    ),
  ];
}
