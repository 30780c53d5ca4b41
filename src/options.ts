/** Parsers for command-line options. */
import type { HostPort } from './config.ts';
import { InvalidArgumentError } from 'commander';

export function integerOption(text: string): number {
  const value = Number(text);
  if (text.trim() === '' || !Number.isSafeInteger(value) || value < 0) {
    throw new InvalidArgumentError('expected a whole number >= 0');
  }
  return value;
}

export function addressOption(text: string): HostPort {
  const colon = text.lastIndexOf(':');
  const host = text.slice(0, colon).replace(/^\[(.*)\]$/, '$1');
  const port = Number(text.slice(colon + 1));
  if (colon < 1 || host === '' || !Number.isSafeInteger(port) || port < 1 || port > 65_535) {
    throw new InvalidArgumentError('expected host:port, with a port from 1 to 65535');
  }
  return { host, port };
}
