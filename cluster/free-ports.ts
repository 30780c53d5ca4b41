/** Checks that the ports of a cluster are free, before any file of it is created. */
import { createServer } from 'node:net';
import { addressesOf, type HostPort } from '../src/api/node-address.ts';
import type { ClusterConfig } from '../src/config/config.ts';

/** @throws the error of `listen` for the first address that is taken or does not belong to this machine */
export async function assertPortsFree(config: ClusterConfig): Promise<void> {
  for (const node of config.nodes) {
    for (const address of Object.values(addressesOf(node))) await listenOnce(address);
  }
}

async function listenOnce({ host, port }: HostPort): Promise<void> {
  const server = createServer();
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(port, host, resolve);
  });
  await new Promise((resolve) => server.close(resolve));
}
