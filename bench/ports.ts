/** Finds free ports on loopback, below the range that the system uses for outgoing connections. */
import { createServer } from 'node:net';

const LOWEST = 10_000;
const COUNT = 18_000;
const ATTEMPTS_MAX = 1_000;

async function isFree(port: number): Promise<boolean> {
  const server = createServer();
  return new Promise((resolve) => {
    server.once('error', () => resolve(false));
    server.listen(port, '127.0.0.1', () => server.close(() => resolve(true)));
  });
}

/**
 * Finds a base port such that the ports at all these distances from it are free.
 *
 * @throws Error if none is found
 */
export async function freeBasePort(distances: readonly number[]): Promise<number> {
  for (let attempt = 0; attempt < ATTEMPTS_MAX; attempt += 1) {
    const base = LOWEST + Math.floor(Math.random() * COUNT);
    const free = await Promise.all(distances.map((distance) => isFree(base + distance)));
    if (free.every(Boolean)) return base;
  }
  throw new Error('found no free ports on 127.0.0.1');
}

export async function freePort(): Promise<number> {
  return freeBasePort([0]);
}
