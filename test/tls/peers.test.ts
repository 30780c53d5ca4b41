/** TLS connections between nodes: which connections a node accepts and opens, and which it refuses. */
import { connect as connectPlainly, type Socket } from 'node:net';
import { connect, createServer, type TLSSocket } from 'node:tls';
import { afterAll, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import type { PeerTls } from '../../src/tls/node-tls.ts';
import type { PeerAddress } from '../../src/transport/tcp-transport.ts';
import { FrameDecoder } from '../../src/wire/frame.ts';
import { cleanupAfterEach, CLUSTER, freeAddress, frameOf, helloFrame, Peer } from '../transport/peers.ts';
import { until } from '../transport/wait.ts';
import { Authority, HOST, type IssuedFor } from './authority.ts';

const DAY_MILLIS = 86_400_000;
const cleanup = cleanupAfterEach();
let ours: Authority;
let foreign: Authority;
const one = { clusterId: CLUSTER, nodeId: 1 };
const two = { clusterId: CLUSTER, nodeId: 2 };

beforeAll(async () => {
  ours = await Authority.make(CLUSTER);
  foreign = await Authority.make(CLUSTER);
});
afterAll(async () => {
  await ours.remove();
  await foreign.remove();
});

async function pair(): Promise<{ a: Peer; b: Peer }> {
  const peers = new Map([
    [1, await freeAddress()],
    [2, await freeAddress()],
  ]);
  const a = await Peer.start(cleanup, 1, peers, { tls: await ours.peer(one) });
  const b = await Peer.start(cleanup, 2, peers, { tls: await ours.peer(two) });
  return { a, b };
}

/** A client with a certificate that trusts every server, and sends at once the frames of an accepted peer. */
class Stranger {
  readonly socket: Socket;
  isClosed = false;

  constructor(port: number, tls: PeerTls | undefined, says: readonly Buffer[]) {
    const { cert, key } = tls?.credentials.current ?? {};
    const socket = connect({ host: HOST, port, rejectUnauthorized: false, cert, key });
    socket.once('secureConnect', () => says.forEach((bytes) => socket.write(bytes)));
    this.socket = socket;
    this.#watch();
  }

  #watch(): void {
    this.socket.on('error', () => {});
    this.socket.resume();
    this.socket.once('close', () => {
      this.isClosed = true;
    });
    cleanup.add(() => this.socket.destroy());
  }

  async closed(): Promise<void> {
    await until('the client is disconnected', () => this.isClosed);
  }
}

describe('two nodes with certificates of one CA', () => {
  it('are connected, and their frames arrive complete', async () => {
    const { a, b } = await pair();
    await Promise.all([a.connectedTo(2), b.connectedTo(1)]);
    const text = 'x'.repeat(300_000);
    expect(a.send(2, text)).toBe(true);
    expect(b.send(1, 'short')).toBe(true);
    await until('both heard the other', () => a.frames.length === 1 && b.frames.length === 1);
    expect(b.textsFrom(1)).toEqual([text]);
    expect(a.textsFrom(2)).toEqual(['short']);
  });
});

describe('a node that listens with a certificate', () => {
  let node: Peer;
  let tls: PeerTls;
  let port: number;
  /** The certificate of node 2, which node 1 knows and which is not running. */
  let second: PeerAddress;
  const parsed = vi.spyOn(FrameDecoder.prototype, 'push');
  const forged = [helloFrame(2, 1), frameOf('change', 'x'), frameOf('requests', 'x')];

  beforeEach(async () => {
    const address = await freeAddress();
    ({ port } = address);
    second = await freeAddress();
    const peers = new Map([
      [1, address],
      [2, second],
    ]);
    tls = await ours.peer(one);
    node = await Peer.start(cleanup, 1, peers, { tls });
    parsed.mockClear();
  });

  const refused: [string, () => Promise<PeerTls | undefined>][] = [
    ['without a certificate', async () => undefined],
    ['with one of a foreign CA', () => foreign.peer(two)],
    ['with one for another cluster of the same CA', () => ours.peer({ clusterId: 'cluster-b', nodeId: 2 })],
    ['with an expired one', () => ours.peer(two, { ...two, agoMillis: 2 * DAY_MILLIS } satisfies IssuedFor)],
  ];
  it.each(refused)('reads no frame of a client %s', async (_, tls) => {
    const stranger = new Stranger(port, await tls(), forged);
    await stranger.closed();
    expect(parsed).not.toHaveBeenCalled();
    expect(node.events).toEqual([]);
  });

  it('trusts the same nodes when its certificate was replaced', async () => {
    await ours.issue(one);
    await tls.credentials.check({ isUrgent: true });
    const stranger = new Stranger(port, await foreign.peer(two), forged);
    await stranger.closed();
    const bare = new Stranger(port, undefined, forged);
    await bare.closed();
    expect(parsed).not.toHaveBeenCalled();
    const peer = new Stranger(port, await ours.peer(two), [helloFrame(2, 1)]);
    await until('node 1 hears a node', () => node.count('introduced 2') === 1);
    peer.socket.destroy();
  });

  it('reads no frame of a client without TLS', async () => {
    const socket = connectPlainly({ host: HOST, port });
    socket.on('error', () => {});
    cleanup.add(() => socket.destroy());
    let isClosed = false;
    socket.once('close', () => (isClosed = true));
    for (const bytes of forged) socket.write(bytes);
    socket.resume();
    await until('it is disconnected', () => isClosed);
    expect(parsed).not.toHaveBeenCalled();
    expect(node.events).toEqual([]);
  });

  it('accepts no hello that names another node than the certificate', async () => {
    const stranger = new Stranger(port, await ours.peer({ clusterId: CLUSTER, nodeId: 3 }), forged);
    await stranger.closed();
    expect(node.events).toEqual([]);
    expect(node.frames).toEqual([]);
  });

  it('accepts a client with the certificate of the node in its hello', async () => {
    const says = [helloFrame(2, 1), frameOf('requests', 'mine')];
    const { socket } = new Stranger(port, await ours.peer(two), says);
    await until('node 1 hears it', () => node.textsFrom(2).includes('mine'));
    expect(node.events).toEqual(['introduced 2']);
    socket.destroy();
    await until('node 1 misses it', () => node.count('lost 2') === 1);
  });

  it('accepts a node while 500 connections are silent', async () => {
    const idle = Array.from({ length: 500 }, () => connectPlainly({ host: HOST, port }));
    let openCount = 0;
    for (const socket of idle) {
      socket.on('error', () => {});
      socket.once('connect', () => (openCount += 1));
      cleanup.add(() => socket.destroy());
    }
    await until('all of them are connected', () => openCount === idle.length);
    const peers = new Map([
      [1, { host: HOST, port }],
      [2, second],
    ]);
    const b = await Peer.start(cleanup, 2, peers, { tls: await ours.peer(two) });
    await b.connectedTo(1);
    expect(b.send(1, 'here')).toBe(true);
    await until('node 1 hears it', () => node.textsFrom(2).includes('here'));
    // Node 1 dials back.
    await node.connectedTo(2);
  });
});

describe('a node that dials', () => {
  const wrong: [string, () => Promise<PeerTls>][] = [
    ["a foreign CA's", () => foreign.peer(two)],
    ["another node's", () => ours.peer({ clusterId: CLUSTER, nodeId: 3 })],
    ["another cluster's", () => ours.peer({ clusterId: 'cluster-b', nodeId: 2 })],
    ['an expired one', () => ours.peer(two, { ...two, agoMillis: 2 * DAY_MILLIS })],
  ];
  it.each(wrong)('sends nothing to a server with %s certificate', async (_, tls) => {
    const { cert, key } = (await tls()).credentials.current;
    let bytesCount = 0;
    let closedCount = 0;
    const server = createServer({ cert, key }, (socket: TLSSocket) => {
      socket.on('data', ({ length }: Buffer) => (bytesCount += length));
    });
    server.on('connection', (socket: Socket) => {
      socket.on('error', () => {});
      socket.once('close', () => (closedCount += 1));
    });
    server.on('tlsClientError', () => {});
    const address = await freeAddress();
    await new Promise<void>((resolve) => {
      server.listen(address.port, HOST, resolve);
    });
    cleanup.add(() => server.close());
    const peers = new Map([
      [1, await freeAddress()],
      [2, address],
    ]);
    await Peer.start(cleanup, 1, peers, { tls: await ours.peer(one) });
    await until('node 1 tried more than once', () => closedCount >= 2);
    expect(bytesCount).toBe(0);
  });
});
