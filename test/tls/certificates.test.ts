/**
 * The checks of a node's certificate files before it starts, with errors that name the file; and the node in the name
 * of a
 * certificate.
 */
import { X509Certificate } from 'node:crypto';
import { copyFile, readFile, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type CredentialFiles, readCredentials } from '../../src/tls/credentials.ts';
import { storeAuthority } from '../../src/tls/certificate-files.ts';
import { nodeNameIn, nodeUri } from '../../src/tls/node-name.ts';
import { Authority } from './authority.ts';

const DAY_MILLIS = 86_400_000;
const node = { clusterId: 'a cluster, of ours/1', nodeId: 7 };
let ours: Authority;
let foreign: Authority;

beforeAll(async () => {
  ours = await Authority.make(node.clusterId);
  foreign = await Authority.make(node.clusterId);
});
afterAll(async () => {
  await ours.remove();
  await foreign.remove();
});

async function refusalOf(files: CredentialFiles, nowMillis = Date.now()): Promise<string> {
  const read = readCredentials(files, { setting: 'tls', node, nowMillis });
  return read.then(
    () => 'accepted',
    (error: Error) => error.message,
  );
}

describe('the name of a node', () => {
  it.each(['a', 'a, URI:quorate:b/2', 'ä/%2F"\\', 'x'.repeat(128)])(
    'is decoded as it was encoded: %s',
    (clusterId) => {
      const uri = nodeUri({ clusterId, nodeId: 3 });
      expect(nodeNameIn(`DNS:a.b, URI:${uri}, IP Address:10.0.0.1`)).toEqual({ clusterId, nodeId: 3 });
    },
  );

  it.each([
    undefined,
    'DNS:a.b',
    'DNS:"a, URI:quorate:c/1"',
    'URI:quorate:c/1, URI:quorate:c/2',
    'URI:quorate:c/0',
    'URI:quorate:c/01',
    'URI:quorate:c/9999999999',
    'URI:quorate:/1',
    'URI:quorate:%zz/1',
    'URI:quorate:c/1/2',
    'URI:http://quorate:c/1',
  ])('is not found in %s', (names) => {
    expect(nodeNameIn(names)).toBeUndefined();
  });
});

describe('a certificate that was issued', () => {
  it('is for its node and hosts, as a server and a client, for the requested time', async () => {
    const { cert, key } = await ours.issue({ ...node, hosts: ['10.0.0.1', '::1', 'a.example'], days: 30 });
    const issued = new X509Certificate(await readFile(cert));
    expect(nodeNameIn(issued.subjectAltName)).toEqual(node);
    expect(issued.checkIP('10.0.0.1')).toBe('10.0.0.1');
    expect(issued.checkIP('::1')).toBe('::1');
    expect(issued.checkHost('a.example')).toBe('a.example');
    expect(issued.checkHost('b.example')).toBeUndefined();
    expect(issued.ca).toBe(false);
    expect(issued.keyUsage).toEqual(['1.3.6.1.5.5.7.3.1', '1.3.6.1.5.5.7.3.2']);
    expect(Date.parse(issued.validTo) - Date.now()).toBeGreaterThan(29.9 * DAY_MILLIS);
    expect(Date.parse(issued.validTo) - Date.now()).toBeLessThan(30.1 * DAY_MILLIS);
    expect((await stat(key)).mode & 0o777).toBe(0o600);
  });

  it('does not outlive its CA', async () => {
    const { cert } = await ours.issue({ ...node, days: 3_650, agoMillis: -9 * 365 * DAY_MILLIS });
    const until = Date.parse(new X509Certificate(await readFile(cert)).validTo);
    expect(until).toBe(Date.parse(new X509Certificate(ours.ca.cert).validTo));
  });

  it('is signed by a CA whose key only its owner can read, and which is never replaced', async () => {
    expect((await stat(join(ours.directory, 'ca', 'ca.key'))).mode & 0o777).toBe(0o600);
    await expect(storeAuthority(ours.directory, foreign.ca)).rejects.toThrow(/ca\.key is there already/);
  });
});

describe('the files of a node', () => {
  it('are accepted when they are valid', async () => {
    expect(await refusalOf(await ours.issue(node))).toBe('accepted');
  });

  it('must exist and be PEM', async () => {
    const files = await ours.issue(node);
    expect(await refusalOf({ ...files, key: '/none.key' })).toBe('tls.key (/none.key) is not there');
    const empty = join(ours.directory, 'empty');
    await writeFile(empty, 'nothing');
    expect(await refusalOf({ ...files, cert: empty })).toBe(
      `tls.cert (${empty}) holds no certificate in PEM`,
    );
    expect(await refusalOf({ ...files, ca: empty })).toBe(`tls.ca (${empty}) holds no certificate in PEM`);
    expect(await refusalOf({ ...files, key: empty })).toMatch(/holds no private key in PEM/);
    await writeFile(empty, '-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n');
    expect(await refusalOf({ ...files, cert: empty })).toMatch(/holds a certificate that cannot be read/);
    await writeFile(empty, 'x'.repeat((1 << 20) + 1));
    expect(await refusalOf({ ...files, key: empty })).toMatch(
      /must have at most 1048576 bytes, but has 1048577/,
    );
  });

  it('must belong together', async () => {
    const { key } = await ours.issue({ ...node, nodeId: 8 });
    const other = join(ours.directory, 'other.key');
    await copyFile(key, other);
    expect(await refusalOf({ ...(await ours.issue(node)), key: other })).toMatch(
      /does not belong to the certificate in/,
    );
  });

  it('must belong to the CA, the cluster and the node', async () => {
    const files = await ours.issue(node);
    expect(await refusalOf({ ...files, ca: foreign.caFile })).toMatch(/is not signed by the CA in/);
    expect(await refusalOf(await ours.issue({ ...node, nodeId: 8 }))).toMatch(
      /is for node 8, but this is node 7/,
    );
    expect(await refusalOf(await ours.issue({ ...node, clusterId: 'b' }))).toMatch(
      /is for cluster b, but this is cluster a cl/,
    );
  });

  it('must be valid now', async () => {
    const files = await ours.issue(node);
    expect(await refusalOf(files, Date.now() + 2 * DAY_MILLIS)).toMatch(/expired at .*quorate certs issue/);
    expect(await refusalOf(files, Date.now() - 2 * DAY_MILLIS)).toMatch(/is valid only from/);
  });
});
