/**
 * The TLS options of a client, and their check. They are checked when the client is created, because `node:tls` accepts
 * a CA file without certificates and then trusts no server.
 */
import { createPrivateKey, X509Certificate } from 'node:crypto';
import { InvalidOptionError } from './errors.ts';

/** TLS options, in the form of `tls.connect` of Node. Only for nodes with `https://`. */
export interface ClientTls {
  /** Certificate authorities in PEM to trust instead of the default ones. */
  readonly ca?: string | readonly string[];
  /** Certificate and key of this client in PEM, for a proxy in front of the nodes that asks for them. */
  readonly cert?: string;
  readonly key?: string;
  /** The name to expect in certificates, if it differs from the host of the address. */
  readonly servername?: string;
}

const KEYS: readonly string[] = ['ca', 'cert', 'key', 'servername'] satisfies (keyof ClientTls)[];
const CERTIFICATE = /-----BEGIN CERTIFICATE-----.*?(?:-----END CERTIFICATE-----|$)/gs;

/**
 * Checks TLS options and returns them.
 *
 * @param nodes origins, all with the same scheme
 * @throws InvalidOptionError for the first wrong option
 */
export function checkTls(tls: ClientTls | undefined, nodes: readonly string[]): ClientTls | undefined {
  if (tls === undefined) return undefined;
  if (typeof tls !== 'object' || tls === null)
    throw new InvalidOptionError('tls', 'must be an object, as {ca}');
  const unknown = Object.keys(tls).find((key) => !KEYS.includes(key));
  if (unknown !== undefined)
    throw new InvalidOptionError(`tls.${unknown}`, `is not known; known are ${KEYS.join(', ')}`);
  if (nodes.some((origin) => !origin.startsWith('https:')))
    throw new InvalidOptionError('tls', 'must be absent where nodes are http://: nothing would be encrypted');
  const { ca, cert, key, servername } = tls;
  if (ca !== undefined) checkAuthorities(ca);
  if (servername !== undefined && (typeof servername !== 'string' || servername === ''))
    throw new InvalidOptionError('tls.servername', 'must be a name');
  if ((cert === undefined) !== (key === undefined))
    throw new InvalidOptionError(
      `tls.${cert === undefined ? 'cert' : 'key'}`,
      'must be set too: cert and key go together',
    );
  if (cert !== undefined && key !== undefined) checkOwn(cert, key);
  return tls;
}

function checkAuthorities(ca: unknown): void {
  const files: readonly unknown[] = Array.isArray(ca) ? ca : [ca];
  if (files.length === 0 || !files.every((file) => firstIn(file) !== undefined))
    throw new InvalidOptionError('tls.ca', 'must be certificates in PEM, as text and not as a path');
}

function checkOwn(cert: unknown, key: unknown): void {
  const certificate = firstIn(cert);
  if (certificate === undefined) throw new InvalidOptionError('tls.cert', 'must be a certificate in PEM');
  let isOwn = false;
  try {
    isOwn = typeof key === 'string' && certificate.checkPrivateKey(createPrivateKey(key));
  } catch {
    // An unreadable key is reported as a wrong one below, without its content.
  }
  if (!isOwn) throw new InvalidOptionError('tls.key', 'must be the private key of tls.cert in PEM');
}

/** Returns the first certificate of a file if all its certificates can be read. */
function firstIn(file: unknown): X509Certificate | undefined {
  if (typeof file !== 'string') return undefined;
  try {
    return file.match(CERTIFICATE)?.map((pem) => new X509Certificate(pem))[0];
  } catch {
    return undefined;
  }
}
