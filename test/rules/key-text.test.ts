/** Tests keys: equal parts give equal texts, different parts different ones. */
import { describe, expect, it } from 'vitest';
import { utf8Length } from '../../src/api/bounded.ts';
import { ipBits, networkOf } from '../../src/rules/ip-prefix.ts';
import { keyText, partNamesIn, userKey } from '../../src/api/key-text.ts';
import { partitionOf } from '../../src/partition/hash.ts';
import { fits, piecesOf } from '../../src/rules/value-pattern.ts';
import { forEachSeed, seeded, someSeeds } from '../raft/seeded.ts';

const TOKEN = 't'.repeat(4_095);

describe('the text of a key', () => {
  it('is the names and values of its parts', () => {
    expect(keyText([])).toBe('*');
    expect(keyText([['user', 'ada']])).toBe('user=ada');
    expect(keyText([['a', '1,b=2']])).toBe('a=1%2cb=2');
    expect(keyText([['a=b', '50%']])).toBe('a%3db=50%25');
    expect(keyText([['a', '']])).toBe('a=');
    expect(keyText([['', '']])).toBe('=');
  });

  it('is never the same for two lists of parts', () => {
    // Few letters, and those that could be confused, so that equal texts occur often by chance.
    const letters = ['a', '=', ',', '%', '*', '25', '2c', '%2c', '3d', '/', 'é'];
    forEachSeed(someSeeds(10, 5), (seed) => {
      const below = seeded(seed);
      const text = (): string =>
        Array.from({ length: below(4) }, () => letters[below(letters.length)]).join('');
      const known = new Map<string, string>();
      const mistaken: string[] = [];
      for (let i = 0; i < 2_000; i += 1) {
        const parts = Array.from({ length: below(4) }, () => [text(), text()] as const);
        const key = keyText(parts) ?? 'none';
        const list = JSON.stringify(parts);
        if ((known.get(key) ?? list) !== list) mistaken.push(`${key}: ${list}, and ${known.get(key)}`);
        known.set(key, list);
      }
      // An `expect` for each would take longer than the whole test.
      expect(mistaken).toEqual([]);
    });
  });

  it('has values of up to 4,096 bytes, and a digest instead if the key would exceed 1,024 bytes', () => {
    expect(keyText([['user', 'x'.repeat(1_019)]])).toHaveLength(1_024);
    expect(keyText([['user', 'x'.repeat(1_020)]])).toBe(`user=${'x'.repeat(64)}#bd4ca0bdb0a193e0`);
    expect(utf8Length(keyText([['user', 'é'.repeat(509)]]) ?? '')).toBe(1_023);
    expect(keyText([['user', 'é'.repeat(510)]])).toMatch(/^user=é{64}#[\da-f]{16}$/);
    expect(keyText([['user', ','.repeat(400)]])).toMatch(/^user=(%2c){64}#[\da-f]{16}$/);
    expect(keyText([['token', `${TOKEN}a`]])).not.toBe(keyText([['token', `${TOKEN}b`]]));
    const several = keyText([
      ['short', 's'.repeat(128)],
      ['token', `${TOKEN}a`],
    ]);
    expect(several).toMatch(/^short=s{128},token=t{64}#[\da-f]{16}$/);
    expect(keyText([['user', `${TOKEN}ab`]])).toBeUndefined();
    expect(keyText([['user', `${'x'.repeat(2_000)}\udc00`]])).toBeUndefined();
    expect(keyText([['user', '\udc00']])).toBeUndefined();
    expect(keyText([['user', 'x'.repeat(10_000_000)]])).toBeUndefined();
  });

  it('cannot be imitated by a digest in a value', () => {
    const [, shortened = ''] = keyText([['user', 'x'.repeat(1_020)]])?.split('=') ?? [];
    expect(keyText([['user', shortened]])).toBe(`user=${shortened.replace('#', '%23')}`);
  });
});

describe('the key of a user', () => {
  it('exists for every user id', () => {
    expect(userKey('ada')).toBe('user=ada');
    expect(userKey(','.repeat(256))).toBe(`user=${'%2c'.repeat(256)}`);
    expect(partNamesIn('user=a=b')).toEqual(['user']);
    expect(
      partNamesIn(
        keyText([
          ['a,b', '1,2'],
          ['ip/24/64', '10.0.0.0'],
        ]) ?? '',
      ),
    ).toEqual(['a,b', 'ip/24/64']);
    expect(partNamesIn('*')).toEqual([]);
  });

  it('is in the partition of the slot of the id', () => {
    for (const id of ['ada', 'a,b', '50%', '{tag}x', '%2c'])
      expect(partitionOf(userKey(id) ?? '', 64)).toBe(partitionOf(id, 64));
  });
});

describe('an address', () => {
  const whole = { ipv4: 32, ipv6: 128 };

  it.each([
    ['10.1.2.3', '10.1.2.3'],
    ['::ffff:10.1.2.3', '10.1.2.3'],
    ['::FFFF:0a01:0203', '10.1.2.3'],
    ['2001:DB8::1', '2001:db8:0:0:0:0:0:1'],
    ['2001:0db8:0:0::0001', '2001:db8:0:0:0:0:0:1'],
    ['::', '0:0:0:0:0:0:0:0'],
    ['1:2:3:4:5:6:1.2.3.4', '1:2:3:4:5:6:102:304'],
    ...[
      '',
      '10.1.2',
      '10.1.2.256',
      '010.1.2.3',
      '1.2.3.4.5',
      ':::',
      '1::2::3',
      '1:2:3:4:5:6:7',
      'g::',
      '::12345',
    ].map((text) => [text, 'none']),
    ...['1:2:3:4:5:6:7:8:9', '1:2:3:4::5:6:7:8', '1.2.3.4::', 'fe80::1%eth0', '10.1.2.3/24', 'unix', ':'].map(
      (text) => [text, 'none'],
    ),
  ] as [string, string][])('%s is %s, in any notation', (text, expected) => {
    expect(networkOf(text, whole)).toBe(expected);
  });

  it('is counted together with addresses that have the same leading bits', () => {
    const net = { ipv4: 20, ipv6: 57 };
    expect(networkOf('10.1.255.3', net)).toBe('10.1.240.0');
    expect(networkOf('2001:db8:1:2ff::1', net)).toBe('2001:db8:1:280::');
    expect(networkOf('2001:db8:1:27f::1', net)).toBe('2001:db8:1:200::');
    expect(networkOf('255.255.255.255', { ipv4: 1, ipv6: 1 })).toBe('128.0.0.0');
    expect(networkOf('ffff::', { ipv4: 1, ipv6: 1 })).toBe('8000::');
  });

  it('is written with its bits in a key', () => {
    expect(ipBits('ip')).toEqual(whole);
    expect(ipBits('ip/24')).toEqual({ ipv4: 24, ipv6: 64 });
    expect(ipBits('ip/64')).toEqual({ ipv4: 32, ipv6: 64 });
    expect(ipBits('ip/32/32')).toEqual({ ipv4: 32, ipv6: 32 });
    for (const part of [
      'ip/',
      'ip/0',
      'ip/129',
      'ip/33/64',
      'ip/24/0',
      'ip/24/129',
      'ip/1/2/3',
      'ip/x',
      'ip/-1',
    ]) {
      expect(ipBits(part)).toBeUndefined();
    }
  });
});

describe('a pattern', () => {
  it('fits the same random values as an equal regular expression', () => {
    forEachSeed(someSeeds(8, 4), (seed) => {
      const below = seeded(seed);
      const text = (letters: string): string =>
        Array.from({ length: below(7) }, () => letters[below(letters.length)]).join('');
      const wrong: string[] = [];
      for (let i = 0; i < 2_000; i += 1) {
        const pattern = text('aab*');
        const value = text('aab');
        const expected = new RegExp(`^${pattern.replaceAll('*', '.*')}$`).test(value);
        if (fits(piecesOf(pattern), value) !== expected) wrong.push(`${pattern} ${value}: ${!expected}`);
      }
      expect(wrong).toEqual([]);
    });
  });
});
