/** Tests peers with host names: a name is resolved for each connection, so a peer may change its address. */
import dns from 'node:dns';
import { afterEach, expect, it, vi } from 'vitest';
import { cleanupAfterEach, freeAddress, Peer, RawServer } from './peers.ts';
import { until } from './wait.ts';

const cleanup = cleanupAfterEach();
const NAME = 'node-2.quorate.test';

afterEach(() => vi.restoreAllMocks());

/**
 * Resolves `NAME` to `addressOf`; undefined: the name does not exist. Returns the number of DNS lookups.
 */
function playLookups(addressOf: () => string | undefined): () => number {
  let lookups = 0;
  const original = dns.lookup as (...args: unknown[]) => void;
  type Done = (error: Error | null, address?: unknown, family?: number) => void;
  const lookup = (name: string, options: { readonly all?: boolean }, done: Done): void => {
    if (name !== NAME)
      return original(...([name, options, done].filter((each) => each !== undefined) as unknown[]));
    lookups += 1;
    const address = addressOf();
    process.nextTick(() => {
      if (address === undefined)
        done(Object.assign(new Error(`getaddrinfo ENOTFOUND ${name}`), { code: 'ENOTFOUND' }));
      else if (options.all === true) done(null, [{ address, family: 4 }]);
      else done(null, address, 4);
    });
  };
  vi.spyOn(dns, 'lookup').mockImplementation(lookup as typeof dns.lookup);
  return () => lookups;
}

async function startPeer(port: number): Promise<Peer> {
  return Peer.start(
    cleanup,
    1,
    new Map([
      [1, await freeAddress()],
      [2, { host: NAME, port }],
    ]),
  );
}

it('the next connection goes to the new address of a name', async () => {
  const server = await RawServer.start(cleanup);
  let address = '127.0.0.3';
  const lookups = playLookups(() => address);
  const a = await startPeer(server.address.port);
  await until('the name was resolved twice', () => lookups() >= 2);
  expect(a.transport.isConnected(2)).toBe(false);
  address = '127.0.0.1';
  await a.connectedTo(2);
  const before = lookups();
  for (const socket of server.sockets) socket.destroy();
  await until('the name is resolved again', () => lookups() > before);
  await a.connectedTo(2);
});

it('a name that does not resolve is logged once at the start, and once at the end', async () => {
  const server = await RawServer.start(cleanup);
  let address: string | undefined;
  const lookups = playLookups(() => address);
  const a = await startPeer(server.address.port);
  const reported = (): string[] => a.lines.filter((line) => line.includes('resolve'));
  await until('the name was resolved three times', () => lookups() >= 3);
  expect(reported()).toEqual([
    expect.stringMatching(
      /"code":"ENOTFOUND".*"the name node-2.quorate.test of node 2 does not resolve: check DNS/,
    ),
  ]);
  address = '127.0.0.1';
  await a.connectedTo(2);
  const before = lookups();
  for (const socket of server.sockets) socket.destroy();
  await until('the name is resolved again', () => lookups() > before);
  await a.connectedTo(2);
  expect(reported()).toEqual([
    expect.any(String),
    expect.stringContaining(`the name ${NAME} resolves again`),
  ]);
});
