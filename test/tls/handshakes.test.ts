/** Handshakes that clients start and do not finish. */
import { connect as connectPlainly, type Socket } from 'node:net';
import { connect, createServer, type Server } from 'node:tls';
import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest';
import { Handshakes } from '../../src/tls/handshakes.ts';
import { cleanupAfterEach } from '../transport/peers.ts';
import { until } from '../transport/wait.ts';
import { Authority, HOST } from './authority.ts';

const cleanup = cleanupAfterEach();
let authority: Authority;
let server: Server;
let port: number;
let failures: string[];
let secureCount: number;

beforeAll(async () => {
  authority = await Authority.make('a');
});
afterAll(async () => {
  await authority.remove();
});
beforeEach(async () => {
  const { cert, key } = (await authority.peer({ clusterId: 'a', nodeId: 1 })).credentials.current;
  failures = [];
  secureCount = 0;
  server = createServer({ cert, key }, () => (secureCount += 1));
  await new Promise<void>((resolve) => {
    server.listen(0, HOST, resolve);
  });
  const address = server.address();
  port = typeof address === 'object' && address !== null ? address.port : 0;
  cleanup.add(() => server.close());
});

function bounded(openMax: number, millisMax: number): Handshakes {
  return new Handshakes(server, {
    limits: { openMax, millisMax },
    failed: (reason) => failures.push(reason),
  });
}

interface Idle {
  readonly socket: Socket;
  isClosed: boolean;
}

async function idle(handshakes: Handshakes, expectedCount: number): Promise<Idle> {
  const socket = connectPlainly({ host: HOST, port });
  const opened = { socket, isClosed: false };
  socket.on('error', () => {});
  socket.resume();
  socket.once('close', () => {
    opened.isClosed = true;
  });
  cleanup.add(() => socket.destroy());
  await until('it is counted', () => handshakes.count === expectedCount);
  return opened;
}

it('are bounded in number: beyond it the oldest is broken', async () => {
  const handshakes = bounded(2, 600_000);
  const first = await idle(handshakes, 1);
  const second = await idle(handshakes, 2);
  const third = await idle(handshakes, 2);
  await until('the first is disconnected', () => first.isClosed);
  expect([second.isClosed, third.isClosed]).toEqual([false, false]);
  expect(failures).toEqual(['more than 2 at a time: the oldest is broken']);
});

it('are bounded in time', async () => {
  const handshakes = bounded(10, 50);
  const late = connectPlainly({ host: HOST, port });
  late.on('error', () => {}).resume();
  let isClosed = false;
  late.once('close', () => (isClosed = true));
  await until('it is disconnected', () => isClosed);
  expect(failures).toEqual(['not finished within 50 ms']);
  expect(handshakes.count).toBe(0);
});

it('do not count any more when they are done, given up, or end with the server', async () => {
  const handshakes = bounded(10, 600_000);
  const client = connect({ host: HOST, port, rejectUnauthorized: false });
  client.on('error', () => {});
  cleanup.add(() => client.destroy());
  await until('it is done', () => secureCount === 1);
  expect(handshakes.count).toBe(0);
  const leaving = await idle(handshakes, 1);
  leaving.socket.destroy();
  await until('it is forgotten', () => handshakes.count === 0);
  const last = await idle(handshakes, 1);
  handshakes.close();
  await until('it is disconnected', () => last.isClosed);
  expect(handshakes.count).toBe(0);
  expect(client.destroyed).toBe(false);
});
