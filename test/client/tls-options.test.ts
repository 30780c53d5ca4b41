/** Tests that the constructor of a client refuses wrong TLS options by name, instead of the first request. */
import { beforeAll, describe, expect, it } from 'vitest';
import { QuorateClient } from '../../src/client/client.ts';
import type { ClientTls } from '../../src/client/tls-options.ts';
import { issueAuthority, issueNodeCertificate } from '../../src/tls/issue.ts';

interface Pair {
  readonly cert: string;
  readonly key: string;
}

let ca: Pair;
let own: Pair;

beforeAll(async () => {
  const nowMillis = Date.now();
  ca = await issueAuthority('test', nowMillis);
  const name = { clusterId: 'test', nodeId: 1 };
  own = await issueNodeCertificate({ ...name, ca, hosts: ['127.0.0.1'], days: 1, nowMillis });
});

function fieldOf(tls: unknown, node = 'https://a:1'): unknown {
  try {
    new QuorateClient({ nodes: [node], tls: tls as ClientTls }).close();
    return undefined;
  } catch (error) {
    return (error as { field?: string }).field;
  }
}

describe('options for TLS', () => {
  it('are accepted if they can be used', () => {
    expect(fieldOf({})).toBeUndefined();
    expect(fieldOf({ ca: ca.cert, cert: own.cert, key: own.key, servername: 'a' })).toBeUndefined();
    expect(fieldOf({ ca: [ca.cert, `a comment\n${own.cert}${ca.cert}`] })).toBeUndefined();
  });

  it.each<[string, () => unknown, string]>([
    ['that are none', () => 'ca.crt', 'tls'],
    ['that are unknown', () => ({ CA: ca.cert }), 'tls.CA'],
    ['with a path for authorities', () => ({ ca: '/etc/ca.crt' }), 'tls.ca'],
    ['with no authority', () => ({ ca: [] }), 'tls.ca'],
    ['with an empty file', () => ({ ca: '' }), 'tls.ca'],
    ['with bytes', () => ({ ca: Buffer.from(ca.cert) }), 'tls.ca'],
    ['with half an authority', () => ({ ca: ca.cert.slice(0, 200) }), 'tls.ca'],
    ['with one authority of two cut off', () => ({ ca: ca.cert + own.cert.slice(0, 200) }), 'tls.ca'],
    ['with a key for an authority', () => ({ ca: [ca.cert, ca.key] }), 'tls.ca'],
    ['without a key', () => ({ cert: own.cert }), 'tls.key'],
    ['without a certificate', () => ({ key: own.key }), 'tls.cert'],
    ['with no certificate', () => ({ cert: own.key, key: own.key }), 'tls.cert'],
    ['with no key', () => ({ cert: own.cert, key: own.cert }), 'tls.key'],
    ['with the key of another', () => ({ cert: own.cert, key: ca.key }), 'tls.key'],
    ['with no name', () => ({ servername: '' }), 'tls.servername'],
  ])('%s are refused with the name of the option', (_, tls, field) => {
    expect(fieldOf(tls())).toBe(field);
  });

  it('are refused if nothing would be encrypted', () => {
    expect(fieldOf({ ca: ca.cert }, 'http://a:1')).toBe('tls');
  });
});
