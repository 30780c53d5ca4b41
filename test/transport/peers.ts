/** Helpers: transports on loopback, and raw sockets that misbehave. */
import { connect, createServer, type Server, Socket } from 'node:net';
import { pino } from 'pino';
import { afterEach, expect, vi } from 'vitest';
import { agreedVersion, noCommonVersionText, VERSIONS } from '../../src/api/versions.ts';
import { clusterTag, encodeFrame, FrameError, type FrameType } from '../../src/wire/frame.ts';
import { pack } from '../../src/wire/fields.ts';
import {
  encodeWelcome,
  type Hello,
  type Refusal,
  type RefusalCode,
  type Sender,
} from '../../src/wire/hello.ts';
import {
  type Gate,
  type PeerAddress,
  TcpTransport,
  type TransportHandlers,
} from '../../src/transport/tcp-transport.ts';
import type { PeerTls } from '../../src/tls/node-tls.ts';
import { freePorts } from '../cluster/harness.ts';
import { until } from './wait.ts';

export const CLUSTER = 'cluster-a';
const HOST = '127.0.0.1';

/** An address without a listener, which outgoing connections most likely do not get during the test. */
export async function freeAddress(): Promise<PeerAddress> {
  const [port = 0] = await freePorts(1);
  return { host: HOST, port };
}

function listen(server: Server): Promise<number> {
  return new Promise((resolve) => {
    server.listen(0, HOST, () => {
      const address = server.address();
      resolve(typeof address === 'object' && address !== null ? address.port : 0);
    });
  });
}

/** Closes everything that a test opened, last first. */
export class Cleanup {
  readonly #closers: (() => unknown)[] = [];

  add(close: () => unknown): void {
    this.#closers.push(close);
  }

  async run(): Promise<void> {
    for (const close of this.#closers.splice(0).reverse()) await close();
  }
}

/** Everything added to it is closed after each test of the file, and timers are real again. */
export function cleanupAfterEach(): Cleanup {
  const cleanup = new Cleanup();
  afterEach(async () => {
    vi.useRealTimers();
    await cleanup.run();
  });
  return cleanup;
}

/**
 * Disables the silence timeout of connections until the test ends: a process that was paused for five seconds would
 * find all of its connections silent. For tests that are not about silence.
 */
export function withoutSilence(cleanup: Cleanup): void {
  const spy = vi.spyOn(Socket.prototype, 'setTimeout').mockReturnThis();
  cleanup.add(() => spy.mockRestore());
}

export interface SeenFrame {
  readonly from: number;
  readonly type: FrameType;
  readonly text: string;
}

export function incarnationOf(id: number): string {
  return `incarnation ${id}`;
}

/** Admits every node that wants to reach this one, except those that the test names. */
export class TestGate implements Gate {
  readonly self: Sender;
  readonly address: PeerAddress;
  readonly unwelcome = new Map<number, RefusalCode>();
  versions = VERSIONS;
  /** The recorded incarnation, by node. */
  readonly recorded = new Map<number, string>();

  constructor(id: number, address: PeerAddress) {
    this.self = { node: id, incarnation: incarnationOf(id) };
    this.address = address;
  }

  helloTo(target: number): Hello {
    const targetIncarnation = this.recorded.get(target);
    const peer = this.address.port === 0 ? {} : { peer: this.address };
    const known = targetIncarnation === undefined ? {} : { targetIncarnation };
    return { ...this.self, target, facts: 'facts', speaks: this.versions, ...peer, ...known };
  }

  refusalOf({ node, target, targetIncarnation = this.self.incarnation, speaks }: Hello): Refusal | undefined {
    if (agreedVersion(this.versions, speaks) === undefined)
      return {
        code: 'otherVersion',
        text: noCommonVersionText({ node, speaks }, { node: this.self.node, speaks: this.versions }),
      };
    const isHere = target === this.self.node && targetIncarnation === this.self.incarnation;
    const code = isHere ? this.unwelcome.get(node) : 'wrongTarget';
    return code === undefined ? undefined : { code, text: `${code}: ${node} > ${target}` };
  }
}

/** A transport that records its events. */
export class Peer {
  readonly id: number;
  readonly address: PeerAddress;
  readonly gate: TestGate;
  readonly transport: TcpTransport;
  readonly frames: SeenFrame[] = [];
  readonly events: string[] = [];
  /** Lines of its log. */
  readonly lines: string[] = [];
  /** True: turns do not end by themselves. */
  heldTurn: (() => void)[] | undefined;
  /** Frames with this text are answered with a FrameError. */
  static readonly POISON = 'poison';

  constructor(id: number, peers: Addresses, random: () => number = () => 0, tls?: PeerTls) {
    this.id = id;
    this.address = [peers.get(id) ?? []].flat()[0] ?? { host: HOST, port: 0 };
    this.gate = new TestGate(id, this.address);
    this.transport = new TcpTransport({
      nodeId: id,
      clusterId: CLUSTER,
      listen: this.address,
      peers: listed(peers),
      gate: this.gate,
      ...(tls !== undefined && { tls }),
      logger: pino({ level: 'info' }, { write: (line: string) => void this.lines.push(line) }),
      random,
      atTurnEnd: (flush) => {
        if (this.heldTurn === undefined) setImmediate(flush);
        else this.heldTurn.push(flush);
      },
    });
  }

  static async start(
    cleanup: Cleanup,
    id: number,
    peers: Addresses,
    { random, tls }: { readonly random?: () => number; readonly tls?: PeerTls } = {},
  ): Promise<Peer> {
    const peer = new Peer(id, peers, random, tls);
    cleanup.add(() => peer.transport.close());
    await peer.transport.start(peer.handlers);
    return peer;
  }

  get handlers(): TransportHandlers {
    return {
      onFrame: (from, type, payload) => {
        const text = Buffer.from(payload).toString();
        if (text === Peer.POISON) throw new FrameError('poison');
        this.frames.push({ from: from.node, type, text });
      },
      onIntroduced: ({ node }) => this.events.push(`introduced ${node}`),
      onUnwelcome: ({ node }, { code }) => this.events.push(`unwelcome ${node}: ${code}`),
      onPeerLost: (peer) => this.events.push(`lost ${peer}`),
      onPeerConnected: (peer) => this.events.push(`connected ${peer}`),
      onPeerDisconnected: (peer) => this.events.push(`disconnected ${peer}`),
      onRefused: (peer, { code }) => this.events.push(`refused by ${peer}: ${code}`),
    };
  }

  send(to: number, text: string): boolean {
    return this.transport.send(to, 'requests', Buffer.from(text));
  }

  textsFrom(peer: number): string[] {
    return this.frames.filter(({ from }) => from === peer).map(({ text }) => text);
  }

  count(event: string): number {
    return this.events.filter((seen) => seen === event).length;
  }

  connectedTo(peer: number): Promise<void> {
    return until(`node ${this.id} is connected to node ${peer}`, () => this.transport.isConnected(peer));
  }
}

/** Returns the addresses of peers, each with one or several. */
export type Addresses = ReadonlyMap<number, PeerAddress | readonly PeerAddress[]>;

export function listed(peers: Addresses): ReadonlyMap<number, readonly PeerAddress[]> {
  return new Map([...peers].map(([id, addresses]) => [id, [addresses].flat()]));
}

/** A raw connection to a transport. */
export class RawClient {
  readonly socket: Socket;
  isClosed = false;

  constructor(cleanup: Cleanup, address: PeerAddress) {
    this.socket = connect({ ...address });
    this.socket.on('error', () => {});
    this.socket.on('close', () => {
      this.isClosed = true;
    });
    this.socket.resume();
    cleanup.add(() => this.socket.destroy());
  }

  write(...bytes: readonly Uint8Array[]): void {
    for (const part of bytes) this.socket.write(part);
  }

  closed(): Promise<void> {
    return until('the connection is closed', () => this.isClosed);
  }
}

/** A listener that welcomes every node and then ignores its connections, unless `onConnection` uses them. */
export class RawServer {
  readonly sockets: Socket[] = [];
  readonly #server: Server;
  #port = 0;

  private constructor(onConnection: (socket: Socket) => void, isPolite: boolean) {
    this.#server = createServer({ pauseOnConnect: true }, (socket) => {
      socket.on('error', () => {});
      this.sockets.push(socket);
      if (isPolite) socket.write(frameOf('welcome', encodeWelcome({ incarnation: 'raw', speaks: VERSIONS })));
      onConnection(socket);
    });
  }

  static async start(
    cleanup: Cleanup,
    onConnection: (socket: Socket) => void = () => {},
    { isPolite = true } = {},
  ): Promise<RawServer> {
    const server = new RawServer(onConnection, isPolite);
    server.#port = await listen(server.#server);
    cleanup.add(async () => {
      for (const socket of server.sockets) socket.destroy();
      await new Promise((resolve) => server.#server.close(resolve));
    });
    return server;
  }

  get address(): PeerAddress {
    return { host: HOST, port: this.#port };
  }
}

export function frameOf(type: FrameType, payload: Uint8Array | string, clusterId = CLUSTER): Buffer {
  return encodeFrame(type, Buffer.from(payload), clusterTag(clusterId));
}

export function helloFrame(from: unknown, to: unknown, clusterId = CLUSTER): Buffer {
  return frameOf(
    'hello',
    pack([
      from,
      `incarnation ${String(from)}`,
      to,
      null,
      'facts',
      null,
      null,
      null,
      null,
      VERSIONS.min,
      VERSIONS.max,
    ]),
    clusterId,
  );
}

/** Nodes 1 and 2 run and are connected; node 3 belongs to the cluster, and the test acts as it. */
export async function pairAndStranger(
  cleanup: Cleanup,
  third?: PeerAddress,
): Promise<{ a: Peer; b: Peer; peers: Map<number, PeerAddress> }> {
  const peers = new Map([
    [1, await freeAddress()],
    [2, await freeAddress()],
    [3, third ?? (await RawServer.start(cleanup)).address],
  ]);
  const a = await Peer.start(cleanup, 1, peers);
  const b = await Peer.start(cleanup, 2, peers);
  await Promise.all([a.connectedTo(2), b.connectedTo(1)]);
  a.send(2, 'hello');
  b.send(1, 'hello');
  await until('both heard the other', () => a.frames.length === 1 && b.frames.length === 1);
  a.frames.length = 0;
  b.frames.length = 0;
  return { a, b, peers };
}

/** Expects that a frame of node 2 reaches node 1, and that their connections never broke. */
export async function expectUnharmed(a: Peer, b: Peer, text: string): Promise<void> {
  expect(b.send(1, text)).toBe(true);
  await until(`node 1 has '${text}'`, () => a.textsFrom(2).includes(text));
  expect([...a.events, ...b.events].filter((event) => /(lost|disconnected) [12]/.test(event))).toEqual([]);
}
