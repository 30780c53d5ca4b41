/**
 * Creates the CA of a cluster and the certificates of its nodes, as PEM. It writes no files. The package it uses
 * loads slowly, so only the commands that create certificates import this file.
 */
// The next package does not load without this one.
import 'reflect-metadata';
import { createPrivateKey, randomBytes, webcrypto } from 'node:crypto';
import { isIP } from 'node:net';
import {
  AuthorityKeyIdentifierExtension,
  BasicConstraintsExtension,
  ExtendedKeyUsage,
  ExtendedKeyUsageExtension,
  KeyUsageFlags,
  KeyUsagesExtension,
  Name,
  SubjectAlternativeNameExtension,
  SubjectKeyIdentifierExtension,
  X509Certificate,
  X509CertificateGenerator,
} from '@peculiar/x509';
import { AUTHORITY_NAME, type NodeName, nodeUri } from './node-name.ts';

/** A certificate and its private key (PKCS #8), both as PEM. */
export interface Issued {
  readonly cert: string;
  readonly key: string;
}

/** What a node's certificate is made from. */
export interface NodeCertificateInit extends NodeName {
  readonly ca: Issued;
  /** Names and addresses by which clients reach the API listeners of the node. */
  readonly hosts: readonly string[];
  /** How long it is valid, in days; shorter if the CA expires earlier. */
  readonly days: number;
  readonly nowMillis: number;
}

const ALGORITHM = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' };
const DAY_MILLIS = 86_400_000;
/** How long a CA is valid, in days. */
export const CA_DAYS = 3_653;
/** Certificates are valid from this many milliseconds ago, because the clock of the other side may be behind. */
const EARLIER_MILLIS = 3_600_000;
const { subtle } = webcrypto;

/** Creates the CA of a new cluster, valid for ten years. It can sign node certificates, but no other CAs. */
export async function issueAuthority(clusterId: string, nowMillis: number): Promise<Issued> {
  const keys = await newKeys();
  const certificate = await X509CertificateGenerator.createSelfSigned(
    {
      ...common(nowMillis, CA_DAYS),
      name: commonName(`${AUTHORITY_NAME} ${clusterId}`),
      keys,
      extensions: [
        new BasicConstraintsExtension(true, 0, true),
        new KeyUsagesExtension(KeyUsageFlags.keyCertSign | KeyUsageFlags.cRLSign, true),
        await SubjectKeyIdentifierExtension.create(keys.publicKey, false, webcrypto),
      ],
    },
    webcrypto,
  );
  return { cert: pemOf(certificate), key: await keyPem(keys) };
}

/**
 * Creates a certificate for one node, for connections with peers in both directions and for its API listeners.
 *
 * @throws Error if the key of the CA is not of type P-256, or does not belong to the CA
 */
export async function issueNodeCertificate(init: NodeCertificateInit): Promise<Issued> {
  const { ca, hosts, days, nowMillis } = init;
  const keys = await newKeys();
  const authority = new X509Certificate(ca.cert);
  const names = hosts.map((value) => ({
    type: isIP(value) === 0 ? ('dns' as const) : ('ip' as const),
    value,
  }));
  const certificate = await X509CertificateGenerator.create(
    {
      ...common(nowMillis, Math.min(days, (authority.notAfter.getTime() - nowMillis) / DAY_MILLIS)),
      subject: commonName(`Quorate node ${init.nodeId}`),
      issuer: authority.subjectName,
      publicKey: keys.publicKey,
      signingKey: await signingKey(ca.key),
      extensions: [
        new BasicConstraintsExtension(false, undefined, true),
        new KeyUsagesExtension(KeyUsageFlags.digitalSignature, true),
        new ExtendedKeyUsageExtension([ExtendedKeyUsage.serverAuth, ExtendedKeyUsage.clientAuth]),
        new SubjectAlternativeNameExtension([{ type: 'url', value: nodeUri(init) }, ...names]),
        await SubjectKeyIdentifierExtension.create(keys.publicKey, false, webcrypto),
        await AuthorityKeyIdentifierExtension.create(authority.publicKey, false, webcrypto),
      ],
    },
    webcrypto,
  );
  return { cert: pemOf(certificate), key: await keyPem(keys) };
}

function common(
  nowMillis: number,
  days: number,
): { serialNumber: string; notBefore: Date; notAfter: Date; signingAlgorithm: typeof ALGORITHM } {
  return {
    // Begins with 01, because a serial number must be positive.
    serialNumber: `01${randomBytes(15).toString('hex')}`,
    notBefore: new Date(nowMillis - EARLIER_MILLIS),
    notAfter: new Date(nowMillis + days * DAY_MILLIS),
    signingAlgorithm: ALGORITHM,
  };
}

/** A common name has at most 64 characters (X.520). */
function commonName(text: string): Name {
  return new Name([{ CN: [{ utf8String: text.slice(0, 64) }] }]);
}

async function newKeys(): Promise<webcrypto.CryptoKeyPair> {
  return subtle.generateKey(ALGORITHM, true, ['sign', 'verify']);
}

async function signingKey(pem: string): Promise<webcrypto.CryptoKey> {
  const der = createPrivateKey(pem).export({ type: 'pkcs8', format: 'der' });
  return subtle.importKey('pkcs8', der, ALGORITHM, false, ['sign']);
}

async function keyPem({ privateKey }: webcrypto.CryptoKeyPair): Promise<string> {
  const key = Buffer.from(await subtle.exportKey('pkcs8', privateKey));
  return createPrivateKey({ key, format: 'der', type: 'pkcs8' })
    .export({ type: 'pkcs8', format: 'pem' })
    .toString();
}

function pemOf(certificate: X509Certificate): string {
  return `${certificate.toString('pem')}\n`;
}
