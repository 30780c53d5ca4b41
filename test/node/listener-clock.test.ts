/** Tests the lower bound for the arrival of requests after the event loop was blocked. */
import { createServer, type Server, Socket } from 'node:net';
import { Worker } from 'node:worker_threads';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { ListenerClock } from '../../src/node/listener-clock.ts';
import { until } from '../transport/wait.ts';

const BLOCK_MILLIS = 300;

function block(millis: number): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, millis);
}

/** A server that records the possible age of everything it reads. */
class Reader {
  readonly clock = new ListenerClock();
  readonly ages: number[] = [];
  readonly sockets: Socket[] = [];
  readonly server: Server = createServer((socket) => {
    this.clock.accepted();
    this.sockets.push(socket);
    socket.on('data', (bytes) => {
      for (let i = 0; i < bytes.length; i += 1) this.ages.push(performance.now() - this.clock.nowMillis());
    });
    socket.on('error', () => {});
  });

  async listen(): Promise<number> {
    await new Promise<void>((resolve) => {
      this.server.listen(0, '127.0.0.1', () => resolve());
    });
    const address = this.server.address();
    return typeof address === 'object' && address !== null ? address.port : 0;
  }

  async close(): Promise<void> {
    this.clock.close();
    for (const socket of this.sockets) socket.destroy();
    await new Promise((resolve) => {
      this.server.close(resolve);
    });
  }
}

/** Opens `count` connections and sends a byte on each, while the event loop of this thread is blocked. */
function connectMeanwhile(port: number, count: number): Worker {
  const shared = new SharedArrayBuffer(4);
  const worker = new Worker(
    `const { workerData } = require('node:worker_threads');
     const { connect } = require('node:net');
     const sent = new Int32Array(workerData.shared);
     for (let i = 0; i < workerData.count; i += 1) {
       const socket = connect(workerData.port, '127.0.0.1', () => socket.write('x', () => {
         Atomics.add(sent, 0, 1);
         Atomics.notify(sent, 0);
       }));
       socket.on('error', () => {});
     }`,
    { eval: true, workerData: { port, count, shared } },
  );
  const sent = new Int32Array(shared);
  for (;;) {
    const soFar = Atomics.load(sent, 0);
    if (soFar >= count) return worker;
    Atomics.wait(sent, 0, soFar, 5_000);
  }
}

describe('the possible age of bytes that are read', () => {
  const reader = { current: new Reader() };
  const workers: Worker[] = [];
  const clients: Socket[] = [];
  afterEach(async () => {
    for (const client of clients.splice(0)) client.destroy();
    await Promise.all(workers.splice(0).map(async (worker) => worker.terminate()));
    await reader.current.close();
    reader.current = new Reader();
  });

  async function connected(count: number): Promise<Socket[]> {
    const port = await reader.current.listen();
    for (let i = 0; i < count; i += 1) clients.push(new Socket().connect(port, '127.0.0.1'));
    await until('all are connected', () => reader.current.sockets.length === count);
    await until('both ends know', () => clients.every(({ connecting }) => !connecting));
    return clients;
  }

  it('is zero while the loop runs', async () => {
    const [client] = await connected(1);
    const { ages } = reader.current;
    // Another process may use the processor for a moment now and then.
    for (let i = 1; i <= 500 && ages.filter((age) => age < 5).length <= 15; i += 1) {
      client?.write('x');
      await until('it is read', () => ages.length === i);
    }
    expect(ages.filter((age) => age < 5).length).toBeGreaterThan(15);
  });

  it('reaches back to before the loop was blocked', async () => {
    const sockets = await connected(10);
    await new Promise((resolve) => setTimeout(resolve, 50));
    for (const socket of sockets) socket.write('x');
    block(BLOCK_MILLIS);
    await until('all is read', () => reader.current.ages.length === 10);
    expect(Math.min(...reader.current.ages)).toBeGreaterThanOrEqual(BLOCK_MILLIS - 1);
  });

  it('includes connections that waited to be accepted, one in each pass of the loop', async () => {
    const port = await reader.current.listen();
    await new Promise((resolve) => setTimeout(resolve, 50));
    workers.push(connectMeanwhile(port, 30));
    block(BLOCK_MILLIS);
    await until('all is read', () => reader.current.ages.length === 30);
    expect(Math.min(...reader.current.ages)).toBeGreaterThanOrEqual(BLOCK_MILLIS - 1);
  });

  it('is zero again soon after', async () => {
    const [client] = await connected(1);
    block(BLOCK_MILLIS);
    await new Promise((resolve) => setTimeout(resolve, 100));
    // At least one of several attempts is not disturbed by other processes.
    for (let i = 1; i <= 10; i += 1) {
      client?.write('x');
      await until('it is read', () => reader.current.ages.length === i);
    }
    expect(Math.min(...reader.current.ages)).toBeLessThan(50);
  });
});

/** An event loop that the test drives: timers, then the poll, then the tasks after it. */
class Loop {
  nowMillis = 0;
  #afterPoll: (() => void)[] = [];
  readonly clock = new ListenerClock({
    monotonicMillis: () => this.nowMillis,
    afterPoll: (fn) => this.#afterPoll.push(fn),
  });

  round(millis: number, accepted: number): void {
    this.nowMillis += millis;
    vi.advanceTimersByTime(millis);
    for (let i = 0; i < accepted; i += 1) this.clock.accepted();
    for (const fn of this.#afterPoll.splice(0)) fn();
  }
}

describe('a loop with a new connection in each round, delayed now and then', () => {
  afterEach(() => vi.useRealTimers());

  it('does not make bytes seem older and older, because a backlog ends', () => {
    vi.useFakeTimers();
    const loop = new Loop();
    const ages: number[] = [];
    for (let i = 0; i < 10_000; i += 1) {
      loop.round(i % 300 === 0 ? 60 : 1, 1);
      ages.push(loop.nowMillis - loop.clock.nowMillis());
    }
    loop.clock.close();
    // Two backlogs of 512 passes, and the time that the loop was blocked in them.
    expect(Math.max(...ages)).toBeLessThan(2 * (512 + 2 * 60) + 100);
  });
});
