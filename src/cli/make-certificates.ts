/** Creates the CA of a cluster and the certificates of its nodes on this machine. It prints nothing. */
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

/** Default validity of a node's certificate, in days. */
export const NODE_DAYS_DEFAULT = 365;
/** Longest validity of a node's certificate, in days. */
export const NODE_DAYS_MAX = 3_650;

/** The certificate to issue. */
export interface IssueOptions {
  readonly data: string;
  readonly id: number;
  /** Host names and addresses, besides those of the node in cluster.json. */
  readonly hosts: readonly string[];
  readonly days: number;
  /** Path of the key of the CA. Absent: where it was created. */
  readonly caKey?: string;
}

/** An issued certificate. */
export interface IssuedCertificate {
  readonly files: IssuedFiles;
  readonly hosts: readonly string[];
  /** When the certificate expires. */
  readonly until: Date;
}

/** Creates the CA of the cluster in a directory. @throws ConfigError if there is a CA already, or no cluster */
export async function makeAuthority(data: string): Promise<IssuedFiles> {
  const { clusterId } = await clusterIn(data);
  return makeAuthorityFor(data, clusterId);
}

/** Creates a CA for a cluster id. @throws ConfigError if there is a CA already */
export async function makeAuthorityFor(directory: string, clusterId: string): Promise<IssuedFiles> {
  const { issueAuthority } = await import('../tls/issue.ts');
  return storeAuthority(directory, await issueAuthority(clusterId, Date.now()));
}

/** Issues the certificate of a node. @throws ConfigError if there is no cluster or no CA, or the CA cannot sign */
export async function makeNodeCertificate({ data, ...options }: IssueOptions): Promise<IssuedCertificate> {
  const { clusterId, nodes } = await clusterIn(data);
  const own = hostsOf(nodes.find((node) => node.id === options.id));
  return issueFor(data, clusterId, { ...options, hosts: [...new Set([...own, ...options.hosts])] });
}

/** Issues a certificate with the CA in `directory`. @throws ConfigError if there is no CA, or it cannot sign */
export async function issueFor(
  directory: string,
  clusterId: string,
  { id, hosts, days, caKey }: Omit<IssueOptions, 'data'>,
): Promise<IssuedCertificate> {
  const ca = await readAuthority(directory, caKey);
  const { issueNodeCertificate } = await import('../tls/issue.ts');
  const init = { ca, clusterId, nodeId: id, hosts, days, nowMillis: Date.now() };
  const issued = await issueNodeCertificate(init).catch(() => {
    // The message of the original error could contain parts of the key.
    throw new ConfigError(
      'the CA',
      'cannot sign: its key must be one of the curve P-256, in PEM and without a passphrase',
    );
  });
  const until = new Date(new X509Certificate(issued.cert).validTo);
  return { files: await storeNodeCertificate(directory, id, issued), hosts, until };
}

/** Creates the CA, and a certificate for each node in the file. */
export async function makeAllCertificates(data: string, { nodes }: ClusterConfig): Promise<void> {
  await makeAuthority(data);
  for (const { id } of nodes) await makeNodeCertificate({ data, id, hosts: [], days: NODE_DAYS_DEFAULT });
}

/** The advice for the key of a new CA. */
export function keepApart(data: string): string {
  const { key } = authorityFiles(data);
  return (
    `the key of the CA is ${key}: anybody who has it can pose as any node. Move it to a machine without a node; ` +
    'nodes need only the folder certs, and `certs issue --ca-key` reads the key from elsewhere'
  );
}

async function clusterIn(data: string): Promise<ClusterConfig> {
  const config = await readCluster(data);
  if (config !== undefined) return config;
  throw new ConfigError(data, 'holds no cluster.json; the certificates need its cluster id');
}

/** The hosts at which cluster.json says that the node is reached. */
export function hostsOf(node: NodeAddress | undefined): string[] {
  if (node === undefined) return [];
  const addresses = Object.values(addressesOf(node));
  return [
    ...new Set(
      addresses.filter(({ host, port }) => sayable({ host, port: port || 1 })).map(({ host }) => host),
    ),
  ];
}
