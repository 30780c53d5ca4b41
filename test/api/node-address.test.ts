/** Parsing and formatting of addresses. */
import { describe, expect, it } from 'vitest';
import { addressText, readAddress } from '../../src/api/node-address.ts';

describe('the text of an address', () => {
  it.each([
    ['127.0.0.1', '127.0.0.1:8101'],
    ['a.example', 'a.example:8101'],
    ['::1', '[::1]:8101'],
    ['2001:db8::7', '[2001:db8::7]:8101'],
  ])('of %s is %s, which is valid in URLs and can be parsed', (host, text) => {
    expect(addressText({ host, port: 8_101 })).toBe(text);
    expect(new URL(`http://${text}`).host).toBe(text);
    expect(readAddress(text)).toEqual({ host, port: 8_101 });
  });

  it('of an IPv6 address is also accepted without brackets', () => {
    expect(readAddress('::1:8101')).toEqual({ host: '::1', port: 8_101 });
  });

  it.each(['', '8101', ':8101', '[]:8101', 'a', 'a:', 'a:0', 'a:65536', 'a:-1', 'a:1.5', 'a:1e3'])(
    'is not %j',
    (text) => {
      expect(readAddress(text)).toBeUndefined();
    },
  );
});
