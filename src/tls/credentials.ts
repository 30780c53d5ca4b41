/**
 * Reads and checks the files of a certificate before the certificate is used. An error names the file and the
 * problem. No message contains any part of a key.
 */
import { createPrivateKey, type KeyObject, X509Certificate } from 'node:crypto';
import { readFile, stat } from 'node:fs/promises';
import { isAbsolute, join } from 'node:path';
import { createSecureContext, type SecureContext } from 'node:tls';
import { ConfigError } from '../config/config.ts';
import { type NodeName, nodeNameIn } from './node-name.ts';

/**
 * Paths of the files, absolute or relative to the working directory. Without `ca`, the other side needs no
 * certificate.
 */
export interface CredentialFiles {
  readonly ca?: string;
  readonly cert: string;
  readonly key: string;
}

/** Checked certificate files. */
export interface Credentials {
  /** All three as PEM. */
  readonly ca?: string;
  readonly cert: string;
  readonly key: string;
  readonly context: SecureContext;
  /** When the certificate expires, in milliseconds since 1970. */
  readonly expiresMillis: number;
  /** True if other users than the owner may read the key file. */
  readonly isKeyShared: boolean;
}

/** What to check. */
export interface CredentialChecks {
  /** The setting that error messages name: `tls` or `tls.listeners`. */
  readonly setting: string;
  /** The node that the certificate must name. Absent: none, as for the clients of a listener. */
  readonly node?: NodeName;
  readonly nowMillis: number;
}

/** The largest file in bytes, far above any certificate chain. A wrong path must not fill the memory. */
const FILE_BYTES_MAX = 1 << 20;
const PEM_CERTIFICATE = /-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g;

/** The file that a path in `cluster.json` means, for this node. */
export function resolvePath(path: string, directory: string, nodeId: number): string {
  const own = path.replaceAll('{id}', String(nodeId));
  return isAbsolute(own) ? own : join(directory, own);
}

/** Reads and checks all files. @throws ConfigError naming the setting and the file */
export async function readCredentials(
  files: CredentialFiles,
  checks: CredentialChecks,
): Promise<Credentials> {
  const { setting } = checks;
  const cert = await readText(files.cert, `${setting}.cert`);
  const key = await readText(files.key, `${setting}.key`);
  const ca = files.ca === undefined ? undefined : await readText(files.ca, `${setting}.ca`);
  const at = (field: string, path: string) => `${setting}.${field} (${path})`;
  const chain = certificatesIn(cert, at('cert', files.cert));
  const [leaf] = chain as [X509Certificate];
  if (!leaf.checkPrivateKey(privateKey(key, at('key', files.key))))
    throw new ConfigError(at('key', files.key), `does not belong to the certificate in ${files.cert}`);
  checkValidity(leaf, at('cert', files.cert), checks.nowMillis);
  if (checks.node !== undefined) checkNode(leaf, at('cert', files.cert), checks.node);
  if (ca !== undefined) {
    const authorities = certificatesIn(ca, at('ca', files.ca ?? ''));
    const isSigned = chain.some((one) => authorities.some((other) => isIssuedBy(one, other)));
    if (!isSigned) throw new ConfigError(at('cert', files.cert), `is not signed by the CA in ${files.ca}`);
  }
  const texts = { cert, key, ...(ca !== undefined && { ca }) };
  return {
    ...texts,
    context: createSecureContext({ ...texts, minVersion: ca === undefined ? 'TLSv1.2' : 'TLSv1.3' }),
    expiresMillis: Date.parse(leaf.validTo),
    isKeyShared: ((await stat(files.key)).mode & 0o077) !== 0,
  };
}

async function readText(path: string, setting: string): Promise<string> {
  try {
    const { size } = await stat(path);
    if (size > FILE_BYTES_MAX)
      throw new ConfigError(
        `${setting} (${path})`,
        `must have at most ${FILE_BYTES_MAX} bytes, but has ${size}`,
      );
    return await readFile(path, 'latin1');
  } catch (error) {
    if (!(error instanceof Error) || !('code' in error) || error instanceof ConfigError) throw error;
    const why = error.code === 'ENOENT' ? 'is not there' : `cannot be read (${String(error.code)})`;
    throw new ConfigError(`${setting} (${path})`, why);
  }
}

function certificatesIn(text: string, field: string): X509Certificate[] {
  const blocks = text.match(PEM_CERTIFICATE) ?? [];
  if (blocks.length === 0) throw new ConfigError(field, 'holds no certificate in PEM');
  try {
    return blocks.map((block) => new X509Certificate(block));
  } catch {
    throw new ConfigError(field, 'holds a certificate that cannot be read');
  }
}

/** The parser's own error is dropped, because it could contain parts of the key. */
function privateKey(text: string, field: string): KeyObject {
  try {
    return createPrivateKey(text);
  } catch {
    throw new ConfigError(field, 'holds no private key in PEM that can be read without a passphrase');
  }
}

function checkValidity({ validFrom, validTo }: X509Certificate, field: string, nowMillis: number): void {
  if (nowMillis > Date.parse(validTo))
    throw new ConfigError(
      field,
      `expired at ${validTo}: issue another one, with \`quorate certs issue\` for example`,
    );
  if (nowMillis < Date.parse(validFrom)) throw new ConfigError(field, `is valid only from ${validFrom} on`);
}

function checkNode({ subjectAltName }: X509Certificate, field: string, node: NodeName): void {
  const named = nodeNameIn(subjectAltName);
  if (named === undefined)
    throw new ConfigError(
      field,
      'names no node: it needs one URI quorate:<clusterId>/<nodeId> among its names',
    );
  if (named.clusterId !== node.clusterId)
    throw new ConfigError(field, `is for cluster ${named.clusterId}, but this is cluster ${node.clusterId}`);
  if (named.nodeId !== node.nodeId)
    throw new ConfigError(field, `is for node ${named.nodeId}, but this is node ${node.nodeId}`);
}

function isIssuedBy(certificate: X509Certificate, authority: X509Certificate): boolean {
  return certificate.checkIssued(authority) && certificate.verify(authority.publicKey);
}
