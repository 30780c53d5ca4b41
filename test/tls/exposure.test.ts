/** The addresses on which a node may listen, and the log lines about them. */
import { describe, expect, it } from 'vitest';
import type { NodeAddress } from '../../src/api/node-address.ts';
import { exposureOf, isLoopback } from '../../src/tls/exposure.ts';
import { validateTlsSettings } from '../../src/config/tls-settings.ts';

const PEERS = { ca: 'ca.crt', cert: 'n.crt', key: 'n.key' };
const ALL = { ...PEERS, listeners: true } as const;

function at(http: string, peer: string, resp: string): NodeAddress {
  return {
    id: 4,
    http: { host: http, port: 1 },
    peer: { host: peer, port: 2 },
    resp: { host: resp, port: 3 },
  };
}
const LOCAL = '127.0.0.1';

describe('an address', () => {
  it.each(['127.0.0.1', '127.8.9.1', '::1', 'localhost', '::ffff:127.0.0.1'])('is loopback: %s', (host) => {
    expect(isLoopback(host)).toBe(true);
  });
  it.each(['0.0.0.0', '::', '10.0.0.1', '127.0.0.1.example', '1127.0.0.1', 'localhost.example', '::2'])(
    'is not loopback: %s',
    (host) => {
      expect(isLoopback(host)).toBe(false);
    },
  );
});

describe('a node', () => {
  it('logs, on loopback without TLS, that it is open', () => {
    expect(exposureOf(at(LOCAL, LOCAL, LOCAL), { tls: undefined, hasTokens: true }, false)).toMatch(
      /open to every program on this machine/,
    );
    expect(exposureOf(at(LOCAL, LOCAL, LOCAL), { tls: PEERS, hasTokens: true }, false)).toMatch(
      /open to every program on this machine/,
    );
    expect(exposureOf(at(LOCAL, LOCAL, LOCAL), { tls: ALL, hasTokens: true }, false)).toBeUndefined();
  });

  it.each([
    [
      'http',
      at('0.0.0.0', LOCAL, LOCAL),
      PEERS,
      /its http address 0\.0\.0\.0:1 needs TLS \(`tls` with `listeners`.*--insecure/,
    ],
    [
      'peer',
      at(LOCAL, '10.0.0.4', LOCAL),
      undefined,
      /its peer address 10\.0\.0\.4:2 needs TLS \(`tls` in .*--insecure/,
    ],
    [
      'resp',
      at(LOCAL, LOCAL, '::'),
      PEERS,
      /its resp address \[::\]:3 needs TLS \(`tls` with `listeners`.*--insecure/,
    ],
  ] as const)(
    'does not start with an unprotected %s address, unless the configuration allows it',
    (_, node, tls, message) => {
      expect(() => exposureOf(node, { tls, hasTokens: true }, false)).toThrow(message);
      expect(exposureOf(node, { tls, hasTokens: true }, true)).toMatch(/^--insecure: anybody who reaches it/);
      expect(exposureOf(node, { tls: ALL, hasTokens: true }, false)).toBeUndefined();
    },
  );
});

it('does not accept TLS clients without tokens on an address for other machines', () => {
  const node = at('10.0.0.4', '10.0.0.4', LOCAL);
  const has = { tls: ALL, hasTokens: false };
  expect(() => exposureOf(node, has, false)).toThrow(
    /its http address 10\.0\.0\.4:1 needs a token of role admin .*--insecure/,
  );
  expect(exposureOf(at(LOCAL, '10.0.0.4', LOCAL), has, false)).toMatch(/open to every program/);
});

describe('tls in cluster.json', () => {
  it.each([
    [PEERS, PEERS],
    [{ ...PEERS, listeners: false }, PEERS],
    [ALL, ALL],
    [
      { ...PEERS, listeners: { cert: 'a', key: 'b' } },
      { ...PEERS, listeners: { cert: 'a', key: 'b' } },
    ],
  ])('may be %j', (given, read) => {
    expect(validateTlsSettings(given, 'tls')).toEqual(read);
  });

  it.each([
    [true, /^tls must be an object/],
    [{ ca: 'a', cert: 'b' }, /^tls\.key must be the path of a file/],
    [{ ...PEERS, ca: '' }, /^tls\.ca must be the path of a file, of 1 to 1024 characters/],
    [{ ...PEERS, certs: 'x' }, /^tls\.certs is not known/],
    [{ ...PEERS, listeners: 'yes' }, /^tls\.listeners must be true, false, or an object/],
    [{ ...PEERS, listeners: null }, /^tls\.listeners must be an object/],
    [{ ...PEERS, listeners: { cert: 'a' } }, /^tls\.listeners\.key must be/],
  ])('must not be %j', (given, message) => {
    expect(() => validateTlsSettings(given, 'tls')).toThrow(message);
  });
});
