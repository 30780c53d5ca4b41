/**
 * Event streams of clients that do not read, connect twice, or leave early: how much is kept for them, and how long.
 */
import { createServer, type Server, type ServerResponse } from 'node:http';
import { connect, type Socket } from 'node:net';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { EventStreams, LISTENERS_MAX } from '../../src/http/event-streams.ts';
import { until } from '../transport/wait.ts';

/** More bytes than the system buffers for a connection. */
const EVENTS = 'x'.repeat(16_777_216);
/** More than is kept for a client that reads nothing. */
const TURNS = 40;

let server: Server;
let streams: EventStreams;
let listening: ServerResponse[];
let mayListen: boolean;
let isOver: boolean;
const sockets: Socket[] = [];

beforeEach(async () => {
  [listening, mayListen, isOver] = [[], true, false];
  streams = new EventStreams({ next: () => EVENTS, isOver: () => isOver });
  server = createServer((_request, response) => {
    listening.push(response);
    streams.add({ response, mayListen: () => mayListen }, 'first');
  });
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve);
  });
});
afterEach(async () => {
  for (const socket of sockets.splice(0)) socket.destroy();
  server.closeAllConnections();
  await new Promise((resolve) => {
    server.close(resolve);
  });
});

/** Asks this many times on one connection, and reads nothing. */
async function ask(times: number): Promise<Socket> {
  const before = listening.length;
  const address = server.address();
  const port = typeof address === 'object' && address !== null ? address.port : 0;
  const socket = connect({ port, host: '127.0.0.1', allowHalfOpen: true });
  sockets.push(socket);
  socket.on('error', () => {});
  socket.write('GET / HTTP/1.1\r\nhost: a\r\n\r\n'.repeat(times));
  await until('it is asked', () => listening.length === before + times);
  return socket;
}

describe('a client that reads nothing', () => {
  it('gets no events until it reads again, and is finally disconnected', async () => {
    await ask(1);
    streams.turn();
    const [response] = listening;
    const kept = response?.writableLength ?? 0;
    expect(kept).toBeGreaterThan(0);
    for (let i = 0; i < 10; i += 1) streams.turn();
    expect(response?.writableLength).toBeLessThanOrEqual(kept);
    for (let i = 0; i < TURNS; i += 1) streams.turn();
    expect(response?.destroyed).toBe(true);
  });

  it.each(['may listen no more', 'should go elsewhere'])('is disconnected also when it %s', async (why) => {
    await ask(1);
    streams.turn();
    mayListen = why !== 'may listen no more';
    isOver = why === 'should go elsewhere';
    for (let i = 0; i < TURNS; i += 1) streams.turn();
    expect(listening[0]?.destroyed).toBe(true);
  });
});

describe('the slot of a client', () => {
  it('is one per connection, and is free when the connection is gone', async () => {
    const socket = await ask(LISTENERS_MAX + 1);
    expect(streams.isFull).toBe(false);
    socket.destroy();
    await until('it is gone', () => listening[0]?.destroyed ?? false);
    for (let i = 0; i < LISTENERS_MAX; i += 1) {
      expect(streams.isFull).toBe(false);
      await ask(1);
    }
    expect(streams.isFull).toBe(true);
  });

  it('is free when the client ends the connection', async () => {
    for (let i = 0; i < LISTENERS_MAX; i += 1) (await ask(1)).end();
    await until('there is room', () => !streams.isFull);
    expect(listening).toHaveLength(LISTENERS_MAX);
  });
});
