/** Tests which budget a request is charged to, and that no header lets a caller choose another one. */
import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { USER_ID_BYTES_MAX } from '../../src/api/request.ts';
import { isBoundedText } from '../../src/api/bounded.ts';
import { networkOf } from '../../src/client/middleware/address.ts';
import type { RequestFacts } from '../../src/client/middleware/facts.ts';
import { keyOf } from '../../src/client/middleware/identify.ts';
import { ROOT } from '../package/packed.ts';
import { allOf, byApiKey, byIp, byUser, clientAddress, firstOf } from '../../src/client/middleware/index.ts';

function factsOf(
  peerAddress: string | undefined,
  headers: Readonly<Record<string, string>> = {},
): RequestFacts {
  return { method: 'GET', path: '/', peerAddress, header: (name) => headers[name] };
}

function behind(peer: string, forwarded: string, trustedProxies: readonly string[]): string | undefined {
  return clientAddress({ trustedProxies })(factsOf(peer, { 'x-forwarded-for': forwarded }));
}

describe('the address of a client', () => {
  it.each([
    ['is that of the connection if no proxy is trusted', '9.9.9.9', '1.1.1.1', [], '9.9.9.9'],
    [
      'is that of the connection if the peer is no trusted proxy',
      '9.9.9.9',
      '1.1.1.1',
      ['10.0.0.0/8'],
      '9.9.9.9',
    ],
    ['is the one that a trusted proxy reports', '10.0.0.1', '1.1.1.1', ['10.0.0.0/8'], '1.1.1.1'],
    [
      'is not the one that the client sent to the proxy',
      '10.0.0.1',
      '6.6.6.6, 1.1.1.1',
      ['10.0.0.0/8'],
      '1.1.1.1',
    ],
    ['is found behind several proxies', '10.0.0.1', '6.6.6.6, 1.1.1.1, 10.0.0.2', ['10.0.0.0/8'], '1.1.1.1'],
    ['is the first one if all are trusted', '10.0.0.1', '10.0.0.3, 10.0.0.2', ['private'], '10.0.0.3'],
    ['is that of the proxy if the header is empty', '127.0.0.1', '', ['loopback'], '127.0.0.1'],
    ['is the last valid one before an invalid one', '10.0.0.1', '1.1.1.1, x', ['private'], '10.0.0.1'],
    ['has no port', '::1', '1.1.1.1:8080', ['loopback'], '1.1.1.1'],
    ['has no brackets', '::1', '[2001:db8::1]:8080', ['loopback'], '2001:db8::1'],
    [
      'is IPv4 if it is an IPv4 address in IPv6 form',
      '::ffff:10.0.0.1',
      '::FFFF:1.1.1.1',
      ['10.0.0.1'],
      '1.1.1.1',
    ],
    ['is IPv4 in every IPv6 form', '::ffff:0a00:1', '0:0::ffff:101:101', ['10.0.0.1'], '1.1.1.1'],
    ['has no zone', 'fe80::1%eth0', '', ['loopback'], 'fe80::1'],
  ])('%s', (_, peer, forwarded, trusted, expected) => {
    expect(behind(peer, forwarded, trusted)).toBe(expected);
  });

  it('is undefined if the connection has none', () => {
    expect(clientAddress()(factsOf(undefined))).toBeUndefined();
    expect(byIp()(undefined, factsOf(undefined))).toBeUndefined();
  });

  it('of an untrusted peer does not depend on any header', () => {
    fc.assert(
      fc.property(fc.string(), (forwarded) => {
        expect(behind('9.9.9.9', forwarded, ['10.0.0.0/8', 'loopback'])).toBe('9.9.9.9');
      }),
    );
  });

  it('behind a trusted proxy is an address, for any text in the header', () => {
    const part = fc.oneof(fc.ipV4(), fc.ipV6(), fc.string(), fc.constant('10.0.0.7'));
    fc.assert(
      fc.property(fc.array(part, { maxLength: 8 }), (parts) => {
        const address = behind('10.0.0.1', parts.join(','), ['private']);
        expect(networkOf(address ?? '', 64)).toMatch(/^[\d.]+$|^[\da-f:]+\/64$/);
      }),
    );
  });

  it.each([['10.0.0.0/33'], ['10.0.0.0/'], ['10.0.0'], ['proxy.local'], ['::/129'], ['10.0.0.0/-1']])(
    'cannot be found by %s',
    (proxy) => {
      expect(() => byIp({ trustedProxies: ['loopback', proxy] })).toThrow(
        expect.objectContaining({ field: 'trustedProxies[1]' }),
      );
    },
  );
});

describe('a network', () => {
  it.each([
    ['1.2.3.4', 64, '1.2.3.4'],
    ['2001:db8:1:2:3:4:5:6', 64, '2001:db8:1:2:0:0:0:0/64'],
    ['2001:db8:1:2ff::', 56, '2001:db8:1:200:0:0:0:0/56'],
    ['::1', 128, '0:0:0:0:0:0:0:1/128'],
    ['1::', 1, '0:0:0:0:0:0:0:0/1'],
    ['8000::', 1, '8000:0:0:0:0:0:0:0/1'],
    ['64:ff9b::1.2.3.4', 128, '64:ff9b:0:0:0:0:102:304/128'],
  ])('of %s with %i bits is %s', (address, bits, expected) => {
    expect(networkOf(address, bits)).toBe(expected);
  });
});

describe('an identifier', () => {
  const facts = factsOf('1.2.3.4', { 'x-api-key': 'secret', authorization: 'Bearer secret' });
  const user = byUser((request: { user?: string }) => request.user);

  it('begins with its kind, so that two kinds never have one budget', async () => {
    expect(await user({ user: 'ip:1.2.3.4' }, facts)).toBe('user:ip:1.2.3.4');
    expect(byIp()({}, facts)).toBe('ip:1.2.3.4');
  });

  it('of an API key is a digest, the same for every header', () => {
    const id = byApiKey()({}, facts);
    expect(id).toMatch(/^key:[\da-f]{32}$/);
    expect(byApiKey('Authorization')({}, facts)).toBe(id);
    expect(byApiKey('x-other')({}, facts)).toBeUndefined();
  });

  it('of an API key is the digest of the Python example in docs/reference/middleware.md', () => {
    const page = readFileSync(join(ROOT, 'docs/reference/middleware.md'), 'utf8');
    const [, program = '', printed = ''] =
      /^```python\n([^]*?print\(digest_of\("k1"\)\)) *# (\S+)\n```$/m.exec(page) ?? [];
    expect(byApiKey()({}, factsOf('1.2.3.4', { 'x-api-key': ' k1 ' }))).toBe(printed);
    const { stdout, error } = spawnSync('python3', ['-c', program], { encoding: 'utf8' });
    // A machine without Python checks the printed digest only.
    expect(error === undefined ? stdout.trim() : printed).toBe(printed);
  });

  it('may be the first of several, or all of them combined', async () => {
    expect(await firstOf(user, byIp())({}, facts)).toBe('ip:1.2.3.4');
    expect(await firstOf(user, byIp())({ user: 'ada' }, facts)).toBe('user:ada');
    expect(await firstOf(user)({ user: '' }, facts)).toBeUndefined();
    expect(await allOf(user, byIp())({ user: 'ada' }, facts)).toBe('user:ada&ip:1.2.3.4');
    expect(await allOf(user, byIp())({}, facts)).toBeUndefined();
  });

  it('may be asynchronous, alone and with others', async () => {
    const session = byUser(async ({ user: name }: { user?: string }) => Promise.resolve(name));
    expect(await session({ user: 'ada' }, facts)).toBe('user:ada');
    expect(await firstOf(session, byIp())({ user: 'ada' }, facts)).toBe('user:ada');
    expect(await firstOf(session, byIp())({}, facts)).toBe('ip:1.2.3.4');
    expect(await allOf(session, byIp())({ user: 'ada' }, facts)).toBe('user:ada&ip:1.2.3.4');
  });

  it.each([[undefined], [null], ['']])(
    'that returns %j identifies nobody, alone and with others',
    async (nothing) => {
      const none = byUser(() => nothing);
      expect(await none({}, facts)).toBeUndefined();
      expect(await firstOf(none, byIp())({}, facts)).toBe('ip:1.2.3.4');
      expect(await firstOf(() => nothing, byIp())({}, facts)).toBe('ip:1.2.3.4');
      expect(await allOf(none, byIp())({}, facts)).toBeUndefined();
      expect(await allOf(() => nothing, byIp())({}, facts)).toBeUndefined();
      expect(await allOf()({}, facts)).toBeUndefined();
    },
  );

  it.each([[{}], [Number.NaN], [true], [Promise.resolve({})]])(
    'that returns %j is an error, and not one budget for all such clients',
    async (id) => {
      for (const wrong of [byUser(() => id as never), firstOf(() => id as never), allOf(() => id as never)])
        await expect(wrong({}, facts)).rejects.toMatchObject({ code: 'INVALID_REQUEST' });
    },
  );

  it('may be an integer', async () => {
    expect(await byUser(() => 7 as never)({}, facts)).toBe('user:7');
  });

  it.each([['Bearer'], ['Bearer '], ['  '], ['']])(
    'of authorization %j identifies nobody',
    (authorization) => {
      expect(byApiKey('authorization')({}, factsOf('1.2.3.4', { authorization }))).toBeUndefined();
    },
  );

  it('of several parts is different if any part is different, for all texts', () => {
    const both = allOf(
      byUser(([a]: string[]) => a),
      byUser(([, b]: string[]) => b),
    );
    const part = fc.string({ minLength: 1, unit: fc.constantFrom('a', '&', '%', 'user:') });
    fc.assert(
      fc.property(part, part, part, part, (a, b, c, d) => {
        const isSame = both([a, b], facts) === both([c, d], facts);
        expect(isSame).toBe(a === c && b === d);
      }),
    );
  });

  it('becomes a valid key of the cluster, and different texts become different keys', () => {
    const unit = fc.constantFrom('a', '&', 'é', '€', '😀', '\ud800', '\udc00', '\ufeff');
    fc.assert(
      fc.property(fc.string({ minLength: 1, maxLength: 300, unit }), (id) => {
        expect(isBoundedText(keyOf(id), USER_ID_BYTES_MAX)).toBe(true);
      }),
      { numRuns: 30 },
    );
    expect(keyOf('x'.repeat(USER_ID_BYTES_MAX))).toBe('x'.repeat(USER_ID_BYTES_MAX));
    expect(keyOf('x'.repeat(257))).not.toBe(keyOf('x'.repeat(258)));
    expect(keyOf('\ud800')).not.toBe(keyOf('\ud801'));
  });
});
