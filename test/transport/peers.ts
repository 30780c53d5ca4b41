/** Transports on loopback, and raw sockets that behave as badly as a test wants. */
import { connect, createServer, type Server, type Socket } from 'node:net';
import { pino } from 'pino';
import { clusterTag, encodeFrame, FrameError, type FrameType } from '../../src/transport/frame.ts';
import { pack } from '../../src/transport/peer-codec.ts';
import { type PeerAddress, TcpTransport } from '../../src/transport/tcp-transport.ts';
import { until } from './wait.ts';

export const CLUSTER = 'cluster-a';
const HOST = '127.0.0.1';

/** An address nobody listens on, most likely until the test does. */
export async function freeAddress(): Promise<PeerAddress> {
  const server = createServer();
  const port = await listen(server);
  await new Promise((resolve) => server.close(resolve));
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

/** Closes what a test opened, last first. */
export class Cleanup {
  readonly #closers: (() => unknown)[] = [];

  add(close: () => unknown): void {
    this.#closers.push(close);
  }

  async run(): Promise<void> {
    for (const close of this.#closers.splice(0).reverse()) await close();
  }
}

export interface SeenFrame {
  readonly from: number;
  readonly type: FrameType;
  readonly text: string;
}

/** A transport that remembers what it was told. */
export class Peer {
  readonly id: number;
  readonly address: PeerAddress;
  readonly transport: TcpTransport;
  readonly frames: SeenFrame[] = [];
  readonly events: string[] = [];
  /** Frames with this text are answered with a FrameError. */
  static readonly POISON = 'poison';

  constructor(id: number, peers: ReadonlyMap<number, PeerAddress>, random: () => number = () => 0) {
    this.id = id;
    this.address = peers.get(id) ?? { host: HOST, port: 0 };
    this.transport = new TcpTransport({
      nodeId: id,
      clusterId: CLUSTER,
      listen: this.address,
      peers,
      logger: pino({ level: 'silent' }),
      random,
      handlers: {
        onFrame: (from, type, payload) => {
          const text = Buffer.from(payload).toString();
          if (text === Peer.POISON) throw new FrameError('poison');
          this.frames.push({ from, type, text });
        },
        onPeerLost: (peer) => this.events.push(`lost ${peer}`),
        onPeerConnected: (peer) => this.events.push(`connected ${peer}`),
        onPeerDisconnected: (peer) => this.events.push(`disconnected ${peer}`),
      },
    });
  }

  static async start(
    cleanup: Cleanup,
    id: number,
    peers: ReadonlyMap<number, PeerAddress>,
    random?: () => number,
  ): Promise<Peer> {
    const peer = new Peer(id, peers, random);
    cleanup.add(() => peer.transport.close());
    await peer.transport.start();
    return peer;
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

/** A connection to a transport without a transport at this end. */
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

/** A listener that does nothing with its connections unless `onConnection` does. */
export class RawServer {
  readonly sockets: Socket[] = [];
  readonly #server: Server;
  #port = 0;

  private constructor(onConnection: (socket: Socket) => void) {
    this.#server = createServer({ pauseOnConnect: true }, (socket) => {
      socket.on('error', () => {});
      this.sockets.push(socket);
      onConnection(socket);
    });
  }

  static async start(
    cleanup: Cleanup,
    onConnection: (socket: Socket) => void = () => {},
  ): Promise<RawServer> {
    const server = new RawServer(onConnection);
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
  return frameOf('hello', pack([from, to]), clusterId);
}
