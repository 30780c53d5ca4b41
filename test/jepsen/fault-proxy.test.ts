import { once } from 'node:events';
import { connect, createServer, type Server, type Socket } from 'node:net';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { FaultProxy } from './fault-proxy.ts';
import { eventually } from '../cluster/harness.ts';
import { seeded } from '../raft/seeded.ts';

/** This process may be paused by the machine during some tries. */
const THROTTLED_TRIES_MAX = 20;

/** Records what one socket received. */
class Ear {
  readonly socket: Socket;
  readonly #chunks: Buffer[] = [];
  bytes = 0;
  ended = false;
  closed = false;

  constructor(socket: Socket) {
    this.socket = socket;
    socket.on('data', (chunk: Buffer) => {
      this.#chunks.push(chunk);
      this.bytes += chunk.byteLength;
    });
    socket.on('end', () => (this.ended = true));
    // A reset may arrive after the end, or before.
    socket.on('error', () => undefined);
    socket.on('close', () => (this.closed = true));
  }

  get heard(): Buffer {
    return Buffer.concat(this.#chunks);
  }

  async hears(text: string): Promise<void> {
    await eventually(`"${text}"`, () => (this.heard.toString() === text ? true : undefined));
  }

  async hearsBytes(count: number): Promise<void> {
    await eventually(`${count} bytes`, () => (this.bytes >= count ? true : undefined));
  }
}

async function expectGone(...ears: readonly Ear[]): Promise<void> {
  await eventually('connections end', () => (ears.every(({ closed }) => closed) ? true : undefined));
}

const pause = async (millis: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, millis));

describe('a fault proxy', () => {
  let target: Server;
  let proxy: FaultProxy;
  const accepted: Ear[] = [];
  const dialled: Ear[] = [];

  beforeEach(async () => {
    target = createServer((socket) => accepted.push(new Ear(socket)));
    target.listen(0, '127.0.0.1');
    await once(target, 'listening');
    const address = target.address();
    const port = typeof address === 'object' && address !== null ? address.port : 0;
    proxy = await FaultProxy.listen({ host: '127.0.0.1', port }, seeded(1));
  });
  afterEach(async () => {
    for (const { socket } of [...accepted.splice(0), ...dialled.splice(0)]) socket.destroy();
    await proxy.close();
    target.close();
  });

  async function dial(): Promise<Ear> {
    const socket = connect({ host: '127.0.0.1', port: proxy.port });
    const ear = new Ear(socket);
    dialled.push(ear);
    await eventually('connected, or refused', () => (socket.connecting ? undefined : true));
    return ear;
  }

  async function pair(): Promise<{ client: Ear; server: Ear }> {
    const count = accepted.length;
    const client = await dial();
    const server = await eventually('the target is dialled', () => accepted[count]);
    return { client, server };
  }

  it('passes data on in both directions, large and small, and the end of the connection', async () => {
    const { client, server } = await pair();
    const large = Buffer.alloc(3 << 20, 'quorate');
    client.socket.write('hello');
    await server.hears('hello');
    client.socket.write(large);
    server.socket.write('welcome');
    await client.hears('welcome');
    await server.hearsBytes(large.length + 5);
    expect(server.heard.subarray(5).equals(large)).toBe(true);
    client.socket.end();
    await eventually('the end', () => (server.ended && client.closed ? true : undefined));
    await eventually('nothing is left', () => (proxy.connectionCount === 0 ? true : undefined));
  });

  it('resets one side at once if the other was reset or cannot be reached', async () => {
    const { client, server } = await pair();
    server.socket.resetAndDestroy();
    await expectGone(client);
    target.close();
    await expectGone(await dial());
  });

  it('cuts: resets existing and new connections until it heals', async () => {
    const { client, server } = await pair();
    proxy.forward.set({ cut: true });
    await expectGone(client, server);
    await expectGone(await dial());
    proxy.forward.heal();
    const again = await pair();
    again.client.socket.write('back');
    await again.server.hears('back');
  });

  it('drops the data of one direction: the other works, and the stream with missing data is reset at the end', async () => {
    const { client, server } = await pair();
    proxy.forward.set({ blackHole: true });
    client.socket.write('lost');
    server.socket.write('heard');
    await client.hears('heard');
    await eventually('the data is lost', () => (proxy.forward.bytesLost === 4 ? true : undefined));
    expect(server.heard.toString()).toBe('');
    // A client that dials meanwhile is accepted, and the target does not learn of it.
    await dial();
    await pause(50);
    expect(accepted).toHaveLength(1);
    proxy.forward.heal();
    await expectGone(client, server);
  });

  it('does not pass the end of a connection through a black hole', async () => {
    const { client, server } = await pair();
    proxy.forward.set({ blackHole: true });
    client.socket.destroy();
    await pause(50);
    expect([server.ended, server.closed]).toEqual([false, false]);
    proxy.forward.heal();
    await expectGone(server);
  });

  it('holds data back, and then delivers everything in one burst', async () => {
    const { client, server } = await pair();
    proxy.forward.set({ clog: true });
    for (let i = 0; i < 10; i += 1) {
      client.socket.write(`${i}`);
      await pause(5);
    }
    client.socket.end();
    await pause(20);
    expect(server.heard.toString()).toBe('');
    proxy.forward.heal();
    await server.hears('0123456789');
    await eventually('the end', () => (server.ended ? true : undefined));
  });

  it('never reads: the buffers of the sender fill up', async () => {
    const { client, server } = await pair();
    proxy.forward.set({ neverRead: true });
    await pause(10);
    const bytes = 24 << 20;
    client.socket.write(Buffer.alloc(bytes));
    await pause(50);
    expect(server.bytes).toBe(0);
    expect(client.socket.writableLength).toBeGreaterThan(0);
    proxy.forward.heal();
    await server.hearsBytes(bytes);
  });

  it('holds back no more data than its buffer may hold', async () => {
    const { client, server } = await pair();
    proxy.forward.set({ clog: true });
    const bytes = 32 << 20;
    client.socket.write(Buffer.alloc(bytes));
    await pause(100);
    expect(client.socket.writableLength).toBeGreaterThan(0);
    proxy.forward.heal();
    await server.hearsBytes(bytes);
  });

  it('delays each read, in order, and delivers waiting data at once when it heals', async () => {
    const { client, server } = await pair();
    proxy.forward.set({ delayMillis: 60, jitterMillis: 20 });
    const startMillis = performance.now();
    for (const text of ['a', 'b', 'c']) {
      client.socket.write(text);
      await pause(5);
    }
    await server.hears('abc');
    expect(performance.now() - startMillis).toBeGreaterThanOrEqual(60);
    proxy.forward.set({ delayMillis: 60_000 });
    client.socket.write('d');
    await pause(20);
    proxy.forward.heal();
    await server.hears('abcd');
  });

  it('limits the throughput', async () => {
    proxy.forward.set({ bytesPerSecond: 40_000 });
    let leastMillis = Infinity;
    for (let i = 0; i < THROTTLED_TRIES_MAX && leastMillis >= 200; i += 1) {
      const { client, server } = await pair();
      const startMillis = performance.now();
      client.socket.write(Buffer.alloc(10_000));
      await server.hearsBytes(1_000);
      leastMillis = Math.min(leastMillis, performance.now() - startMillis);
      await server.hearsBytes(10_000);
      expect(performance.now() - startMillis).toBeGreaterThanOrEqual(240);
    }
    expect(leastMillis).toBeLessThan(200);
  });

  it('flips one bit', async () => {
    const { client, server } = await pair();
    proxy.forward.set({ flipOneIn: 1 });
    const sent = Buffer.alloc(100);
    client.socket.write(sent);
    await server.hearsBytes(100);
    const wrong = [...server.heard].filter((byte) => byte !== 0);
    expect(wrong).toHaveLength(1);
    expect([1, 2, 4, 8, 16, 32, 64, 128]).toContain(wrong[0]);
    expect(proxy.forward.bitsFlipped).toBe(1);
  });

  it('resets the connection in the middle of sent data', async () => {
    const { client, server } = await pair();
    proxy.forward.set({ resetOneIn: 1 });
    client.socket.write('0123456789');
    await expectGone(client, server);
    expect(server.bytes).toBeLessThan(10);
    expect(proxy.forward.resets).toBe(1);
  });

  it('drops the oldest connections if a client dials without end', async () => {
    proxy.forward.set({ clog: true });
    for (let i = 0; i < 40; i += 1) await dial();
    await expectGone(...dialled.slice(0, 8));
    expect(proxy.connectionCount).toBe(32);
  });
});
