/** Tests the parsing and the bounds of command-line options. */
import { InvalidArgumentError } from 'commander';
import { describe, expect, it } from 'vitest';
import {
  addressOption,
  basePortOption,
  integerFrom,
  integerOption,
  nodeOption,
} from '../../src/cli/options.ts';

describe('the value of an option', () => {
  it('is a whole number within its bounds, which are named', () => {
    const oneToTen = integerFrom(1, 10);
    expect(['1', ' 7 ', '10'].map(oneToTen)).toEqual([1, 7, 10]);
    for (const text of ['', ' ', '0', '11', '1.5', '-1', 'x', '1e99', 'NaN']) {
      expect(() => oneToTen(text)).toThrow(InvalidArgumentError);
      expect(() => oneToTen(text)).toThrow('expected a whole number from 1 to 10');
    }
    expect(() => integerOption('-1')).toThrow('expected a whole number >= 0');
    expect(basePortOption('8100')).toBe(8_100);
    // The gRPC port of node 64 would exceed the highest port.
    expect(basePortOption('62471')).toBe(62_471);
    expect(() => basePortOption('62472')).toThrow('from 1 to 62471');
  });

  it('is an address or a URL', () => {
    expect(addressOption('[::1]:8101')).toEqual({ host: '::1', port: 8_101 });
    for (const text of ['here', ':1', 'here:0', 'here:65536', 'here:'])
      expect(() => addressOption(text)).toThrow('expected host:port');
    expect(nodeOption('http://127.0.0.1:8101')).toBe('http://127.0.0.1:8101');
    expect(nodeOption('127.0.0.1:8101')).toBe('http://127.0.0.1:8101');
    expect(nodeOption('[::1]:8101')).toBe('http://[::1]:8101');
    for (const text of ['ftp://here', 'http://'])
      expect(() => nodeOption(text)).toThrow('expected host:port, or a URL such as http://127.0.0.1:8101');
  });
});
