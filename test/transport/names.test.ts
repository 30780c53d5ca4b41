/** Peers that are known by a name: it is looked up anew for each connection, so they may come back at another address. */
import dns from 'node:dns';
import { afterEach, expect, it, vi } from 'vitest';
import { cleanupAfterEach, freeAddress, Peer, RawServer } from './peers.ts';
import { until } from './wait.ts';

const cleanup = cleanupAfterEach();
const NAME = 'node-2.quorate.test';

afterEach(() => vi.restoreAllMocks());

it('a name that leads elsewhere than before is followed with the next connection', async () => {
  const server = await RawServer.start(cleanup);
  let address = '127.0.0.3';
  let lookups = 0;
  const original = dns.lookup as (...args: unknown[]) => void;
  type Done = (error: Error | null, address: unknown, family?: number) => void;
  const lookup = (name: string, options: { readonly all?: boolean }, done: Done): void => {
    if (name !== NAME)
      return original(...([name, options, done].filter((each) => each !== undefined) as unknown[]));
    lookups += 1;
    process.nextTick(() =>
      options.all === true ? done(null, [{ address, family: 4 }]) : done(null, address, 4),
    );
  };
  vi.spyOn(dns, 'lookup').mockImplementation(lookup as typeof dns.lookup);
  const { port } = server.address;
  const a = await Peer.start(
    cleanup,
    1,
    new Map([
      [1, await freeAddress()],
      [2, { host: NAME, port }],
    ]),
  );
  await until('nobody was found there twice', () => lookups >= 2);
  expect(a.transport.isConnected(2)).toBe(false);
  address = '127.0.0.1';
  await a.connectedTo(2);
  const before = lookups;
  for (const socket of server.sockets) socket.destroy();
  await until('it is looked up again', () => lookups > before);
  await a.connectedTo(2);
});
