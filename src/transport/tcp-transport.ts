/**
 * Connections between the nodes of one cluster. Each node dials every peer and sends only on the connection it
 * dialled; it receives on those that peers dialled. A connection that misbehaves is closed and harms nothing
 * else. Delivery is best effort and in order per connection; who needs more repeats himself.
 *
 * Who dials says its own address as well. A node that was away, or joins with an old configuration, may know nobody of
 * those who belong to the cluster now, and hears from them who does: so it dials back whoever introduces itself, unless
 * it knows that this node was removed.
 */
import { connect, createServer, type Server, type Socket } from 'node:net';
import type { Logger } from 'pino';
import type { NodeId } from '../../raft/types.ts';
import {
  clusterTag,
  encodeFrame,
  FRAME_PAYLOAD_BYTES_MAX,
  FrameDecoder,
  type Frame,
  FrameError,
  type FrameType,
} from './frame.ts';
import { Fields, pack, unpack } from './peer-codec.ts';
import { ThrottledLog } from './throttled-log.ts';

export interface PeerAddress {
  readonly host: string;
  readonly port: number;
}

export interface TransportHandlers {
  /** A frame of a known peer. A FrameError thrown here closes that connection. */
  onFrame(from: NodeId, type: FrameType, payload: Uint8Array): void;
  /** The connection that `peer` dialled broke: its process ended, or the network between us did. */
  onPeerLost(peer: NodeId): void;
  /** We can send to `peer` again. */
  onPeerConnected(peer: NodeId): void;
  /** We cannot send to `peer` any more; what was sent last may not have arrived. */
  onPeerDisconnected(peer: NodeId): void;
}

export interface TcpTransportInit {
  readonly nodeId: NodeId;
  readonly clusterId: string;
  readonly listen: PeerAddress;
  readonly peers: ReadonlyMap<NodeId, PeerAddress>;
  readonly handlers: TransportHandlers;
  readonly logger: Logger;
  /** In [0, 1); spreads reconnects. */
  readonly random: () => number;
}

/** What may wait in memory for one slow peer. Past it, frames are dropped: Raft and the deadlines cope. */
const SEND_BUFFER_BYTES_MAX = 64 << 20;
const RECONNECT_MILLIS_MIN = 50;
const RECONNECT_MILLIS_MAX = 1_000;
const CONNECT_MILLIS_MAX = 2_000;
/** A connection that has not said who it is by then is closed. */
const HELLO_MILLIS_MAX = 5_000;
const HELLO_BYTES_MAX = 1_024;
/** Nodes that introduced themselves and are no known peers. */
const INTRODUCED_MAX = 16;
/** Far above what a cluster needs, far below what would exhaust memory or descriptors. */
const INCOMING_MAX = 256;
/** Nodes report twice a second; one that is silent for so long is gone, though nobody closed the connection. */
const SILENT_MILLIS_MAX = 5_000;
/** A connection that held for so long was a success: the next reconnect starts from the shortest wait. */
const STABLE_MILLIS_MIN = 1_000;

interface Outgoing {
  readonly peer: NodeId;
  readonly address: PeerAddress;
  /** It told its address itself, and nobody else has told us of it yet. */
  isIntroduced: boolean;
  socket: Socket | undefined;
  connected: boolean;
  connectedAtMillis: number;
  failures: number;
  retry: NodeJS.Timeout | undefined;
}

export class TcpTransport {
  readonly #init: TcpTransportInit;
  /** For what strangers and broken peers can cause as often as they like. */
  readonly #log: ThrottledLog<'refused' | 'badFrame' | 'silent'>;
  readonly #tag: Buffer;
  readonly #outgoing = new Map<NodeId, Outgoing>();
  readonly #incoming = new Map<NodeId, Socket>();
  readonly #accepted = new Set<Socket>();
  #retired: ReadonlySet<NodeId> = new Set();
  #server: Server | undefined;
  #closed = false;

  constructor(init: TcpTransportInit) {
    this.#init = init;
    this.#log = new ThrottledLog(init.logger);
    this.#tag = clusterTag(init.clusterId);
    this.setPeers(init.peers);
  }

  /**
   * From now on these are the peers: others are disconnected, new ones dialled. Those who introduced themselves stay
   * until they are known or `retired`: removed for good.
   */
  setPeers(peers: ReadonlyMap<NodeId, PeerAddress>, retired: ReadonlySet<NodeId> = new Set()): void {
    this.#retired = retired;
    for (const outgoing of this.#outgoing.values()) {
      const { peer, address } = outgoing;
      const now = peers.get(peer);
      if (now === undefined && outgoing.isIntroduced && !retired.has(peer)) continue;
      if (now?.host !== address.host || now.port !== address.port) this.#drop(outgoing);
      else outgoing.isIntroduced = false;
    }
    for (const [peer, address] of peers) {
      if (peer !== this.#init.nodeId && !this.#outgoing.has(peer)) this.#add(peer, address, false);
    }
  }

  /** Everybody this node talks to. */
  get peers(): Iterable<NodeId> {
    return this.#outgoing.keys();
  }

  #add(peer: NodeId, address: PeerAddress, isIntroduced: boolean): void {
    const outgoing: Outgoing = {
      peer,
      address,
      isIntroduced,
      socket: undefined,
      connected: false,
      connectedAtMillis: 0,
      failures: 0,
      retry: undefined,
    };
    this.#outgoing.set(peer, outgoing);
    if (this.#server !== undefined) this.#dial(outgoing);
  }

  #drop(outgoing: Outgoing): void {
    this.#outgoing.delete(outgoing.peer);
    clearTimeout(outgoing.retry);
    outgoing.socket?.destroy();
    this.#incoming.get(outgoing.peer)?.destroy();
  }

  /** Listens and starts dialling. Rejects if the address cannot be bound. Resolves with the port listened on. */
  async start(): Promise<number> {
    const server = createServer((socket) => this.#accept(socket));
    server.maxConnections = INCOMING_MAX;
    this.#server = server;
    const { host, port } = this.#init.listen;
    await new Promise<void>((resolve, reject) => {
      server.once('error', reject);
      server.listen(port, host, () => {
        server.off('error', reject);
        resolve();
      });
    });
    server.on('error', (error) => this.#init.logger.error({ err: error }, 'peer listener failed'));
    for (const peer of this.#outgoing.values()) this.#dial(peer);
    const address = server.address();
    return typeof address === 'object' && address !== null ? address.port : port;
  }

  isConnected(peer: NodeId): boolean {
    return this.#outgoing.get(peer)?.connected ?? false;
  }

  /** Sends one frame. False: it was dropped, because the peer is not connected or too slow. */
  send(to: NodeId, type: FrameType, payload: Uint8Array): boolean {
    const peer = this.#outgoing.get(to);
    if (peer?.socket === undefined || !peer.connected) return false;
    if (peer.socket.writableLength > SEND_BUFFER_BYTES_MAX) return false;
    peer.socket.write(encodeFrame(type, payload, this.#tag));
    return true;
  }

  async close(): Promise<void> {
    this.#closed = true;
    for (const peer of this.#outgoing.values()) {
      clearTimeout(peer.retry);
      peer.socket?.destroy();
    }
    for (const socket of this.#accepted) socket.destroy();
    this.#log.close();
    const server = this.#server;
    if (server === undefined) return;
    await new Promise<void>((resolve) => {
      server.close(() => resolve());
    });
  }

  #dial(peer: Outgoing): void {
    const socket = connect({ ...peer.address, noDelay: true, keepAlive: true });
    peer.socket = socket;
    const timer = setTimeout(() => socket.destroy(), CONNECT_MILLIS_MAX);
    socket.once('connect', () => {
      clearTimeout(timer);
      peer.connected = true;
      peer.connectedAtMillis = performance.now();
      const { nodeId, listen } = this.#init;
      socket.write(encodeFrame('hello', pack([nodeId, peer.peer, listen.host, listen.port]), this.#tag));
      this.#init.logger.info({ peer: peer.peer }, 'connected to peer');
      this.#init.handlers.onPeerConnected(peer.peer);
    });
    // The peer never sends on this connection; reading notices that it closed.
    socket.resume();
    socket.on('error', (error) => {
      this.#init.logger.debug({ peer: peer.peer, err: error }, 'connection to peer failed');
    });
    socket.once('close', () => {
      clearTimeout(timer);
      const wasConnected = peer.connected;
      if (wasConnected && performance.now() - peer.connectedAtMillis >= STABLE_MILLIS_MIN) peer.failures = 0;
      peer.connected = false;
      peer.socket = undefined;
      if (this.#closed) return;
      if (wasConnected) {
        this.#init.logger.warn({ peer: peer.peer }, 'lost the connection to peer');
        this.#init.handlers.onPeerDisconnected(peer.peer);
      }
      if (this.#outgoing.get(peer.peer) !== peer) return;
      if (peer.isIntroduced && !this.#incoming.has(peer.peer)) {
        // It is gone, and says who it is when it comes back.
        this.#outgoing.delete(peer.peer);
        return;
      }
      peer.retry = setTimeout(() => this.#dial(peer), this.#reconnectMillis(peer.failures));
      peer.failures += 1;
    });
  }

  /** Doubles up to a second, with jitter, so that a returning node is not met by everybody at once. */
  #reconnectMillis(failures: number): number {
    const base = Math.min(RECONNECT_MILLIS_MAX, RECONNECT_MILLIS_MIN * 2 ** Math.min(failures, 10));
    return base * (0.5 + this.#init.random() / 2);
  }

  #accept(socket: Socket): void {
    socket.setNoDelay(true);
    socket.setKeepAlive(true);
    this.#accepted.add(socket);
    const decoder = new FrameDecoder(this.#tag, HELLO_BYTES_MAX);
    let from: NodeId | undefined;
    const helloTimer = setTimeout(() => socket.destroy(), HELLO_MILLIS_MAX);
    const onFrame = (frame: Frame): void => {
      // A handler may have closed the connection over an earlier frame of the same read.
      if (socket.destroyed) return;
      if (from !== undefined) {
        this.#init.handlers.onFrame(from, frame.type, frame.payload);
        return;
      }
      from = this.#readHello(frame);
      clearTimeout(helloTimer);
      decoder.payloadBytesMax = FRAME_PAYLOAD_BYTES_MAX;
      const older = this.#incoming.get(from);
      this.#incoming.set(from, socket);
      older?.destroy();
    };
    socket.on('data', (bytes: Buffer) => {
      try {
        if (!socket.destroyed) decoder.push(bytes, onFrame);
      } catch (error) {
        if (!(error instanceof FrameError)) throw error;
        const { remoteAddress, remotePort } = socket;
        const fields = { from, remoteAddress, remotePort, reason: error.message };
        if (from === undefined) this.#log.warn('refused', fields, 'refused a connection on the peer port');
        else this.#log.warn('badFrame', fields, 'closed a peer connection: bad frame');
        socket.destroy();
      }
    });
    socket.setTimeout(SILENT_MILLIS_MAX, () => {
      this.#log.warn('silent', { from }, 'a peer fell silent');
      socket.destroy();
      // What we send to it may go nowhere as well: dial anew.
      if (from !== undefined) this.#outgoing.get(from)?.socket?.destroy();
    });
    socket.on('error', (error) =>
      this.#init.logger.debug({ from, err: error }, 'connection from peer failed'),
    );
    socket.once('close', () => {
      clearTimeout(helloTimer);
      this.#accepted.delete(socket);
      if (from === undefined || this.#incoming.get(from) !== socket) return;
      this.#incoming.delete(from);
      if (!this.#closed) this.#init.handlers.onPeerLost(from);
    });
  }

  /** The first frame says who dials and whom they think they reached. */
  #readHello(frame: Frame): NodeId {
    if (frame.type !== 'hello') throw new FrameError(`expected hello first, got ${frame.type}`);
    const fields = new Fields(unpack(frame.payload));
    const from = fields.integer('node');
    const to = fields.integer('target');
    if (to !== this.#init.nodeId) throw new FrameError(`node ${from} looked for node ${to} here`);
    if (!this.#outgoing.has(from)) this.#introduce(from, fields);
    return from;
  }

  #introduce(from: NodeId, fields: Fields): void {
    const introduced = [...this.#outgoing.values()].filter(({ isIntroduced }) => isIntroduced);
    if (from === this.#init.nodeId || this.#retired.has(from) || introduced.length >= INTRODUCED_MAX)
      throw new FrameError(`node ${from} is not a member of this cluster`);
    const address = { host: fields.string('host'), port: fields.integer('port') };
    if (address.host === '' || address.port < 1 || address.port > 65_535)
      throw new FrameError(`node ${from} cannot be dialled at ${address.host}:${address.port}`);
    this.#init.logger.info({ peer: from, address }, 'a node introduced itself');
    this.#add(from, address, true);
  }
}
