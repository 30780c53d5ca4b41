/**
 * Imported into a process before anything else: resolves host names from the file QUORATE_TEST_HOSTS, a JSON object
 * of names and addresses, which is read again each time.
 */
import dns, { type LookupOptions } from 'node:dns';
import { readFileSync } from 'node:fs';
import { isIP } from 'node:net';

type Done = (error: Error | null, address?: unknown, family?: number) => void;

const original = dns.lookup as (name: string, options: LookupOptions, done: Done) => void;

function lookup(name: string, options: LookupOptions | Done, callback?: Done): void {
  const [given, done] =
    typeof options === 'function' ? [{}, options] : [options, callback ?? ((): void => undefined)];
  if (isIP(name) !== 0) return original(name, given, done);
  const hosts = JSON.parse(readFileSync(process.env['QUORATE_TEST_HOSTS'] ?? '', 'utf8')) as Record<
    string,
    string
  >;
  const address = hosts[name];
  if (address === undefined) {
    process.nextTick(done, Object.assign(new Error(`getaddrinfo ENOTFOUND ${name}`), { code: 'ENOTFOUND' }));
    return;
  }
  if (given.all === true) process.nextTick(done, null, [{ address, family: 4 }]);
  else process.nextTick(done, null, address, 4);
}

Object.assign(dns, { lookup });
