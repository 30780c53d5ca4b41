/** The options for TLS, and whether they can be used, said when a client is made: `node:tls` takes a file of authorities without any, and trusts nobody. */
import { createPrivateKey, X509Certificate } from 'node:crypto';
import { InvalidOptionError } from './errors.ts';

/** As `tls.connect` of Node takes them; only where nodes are `https://`. */
export interface ClientTls {
  /** Authorities in PEM that may have signed the nodes' certificates, instead of the usual ones. */
  readonly ca?: string | readonly string[];
  /** This client's own certificate and key in PEM, where a proxy in front of the nodes asks for one. */
  readonly cert?: string;
  readonly key?: string;
  /** The name that certificates must have, where it is not that of the address. */
  readonly servername?: string;
}

const KEYS: readonly string[] = ['ca', 'cert', 'key', 'servername'] satisfies (keyof ClientTls)[];
const CERTIFICATE = /-----BEGIN CERTIFICATE-----.*?(?:-----END CERTIFICATE-----|$)/gs;

/**
 * @param nodes origins, all of one kind
 * @throws InvalidOptionError naming the first that is wrong
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
      'must be there with the other',
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
    // What cannot be read is no key. What it holds is told to nobody.
  }
  if (!isOwn) throw new InvalidOptionError('tls.key', 'must be the private key of tls.cert in PEM');
}

/** Of a file whose certificates can all be read. */
function firstIn(file: unknown): X509Certificate | undefined {
  if (typeof file !== 'string') return undefined;
  try {
    return file.match(CERTIFICATE)?.map((pem) => new X509Certificate(pem))[0];
  } catch {
    return undefined;
  }
}
