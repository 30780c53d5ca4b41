/**
 * Connections between the nodes of a cluster. Each node dials every peer and sends only on connections that it
 * dialled; it receives on those that peers dialled. A connection that misbehaves is closed and harms no other.
 * Delivery is best effort, in order per connection; a sender that needs more must repeat.
 *
 * A dialling node sends its id, the node that it looks for, and its own address; if it is refused, it gets the
 * reason. A node that was away, or joins with an old configuration, may know no current member. So members dial
 * back a node that introduces itself.
 */
import type { Socket } from 'node:net';
import type { Logger } from 'pino';
import type { NodeId } from '../../raft/types.ts';
import { agreedVersion, type VersionRange } from '../api/versions.ts';
import { Dialer, type PeerAddress } from './dialer.ts';
import type { PeerTls } from '../tls/node-tls.ts';
import { clusterTag, encodeFrame, FrameError, type PeerFrameType } from '../wire/frame.ts';
import { encodeWelcome, type Hello, type Refusal, type Sender } from '../wire/hello.ts';
import { IncomingConnection, refuse } from './incoming-connection.ts';
import { PeerListener } from './peer-listener.ts';
import { ThrottledLog } from './throttled-log.ts';

export type { PeerAddress } from './dialer.ts';

/** Identity of this node, and admission of others. Implemented in src/meta/admission.ts. */
export interface Gate {
  readonly self: Sender;
  /** The protocol versions that this node speaks now, as in its hello. */
  readonly versions: VersionRange;
  /** The hello for a node that is dialled. */
  helloTo(target: NodeId): Hello;
  /** Why this node is refused; undefined: it is admitted. */
  refusalOf(hello: Hello): Refusal | undefined;
}

/** The callbacks of a transport. */
export interface TransportHandlers {
  /** A frame of an admitted peer. A FrameError thrown here closes that connection. */
  onFrame(from: Sender, type: PeerFrameType, payload: Uint8Array): void;
  /** A peer with this hello was admitted. */
  onIntroduced(hello: Hello): void;
  /** A peer with this hello was refused. */
  onUnwelcome(hello: Hello, refusal: Refusal): void;
  /** The connection that `peer` dialled broke: its process ended, or the network failed. */
  onPeerLost(peer: NodeId): void;
  /** This node can send to `peer` again, as it was welcomed there. */
  onPeerConnected(peer: NodeId): void;
  /** This node cannot send to `peer` any more; what was sent last may be lost. */
  onPeerDisconnected(peer: NodeId): void;
  /** `peer`, or the process at its address, refused this node. */
  onRefused(peer: NodeId, refusal: Refusal): void;
}

/** What `TcpTransport` needs. */
export interface TcpTransportInit {
  readonly nodeId: NodeId;
  readonly clusterId: string;
  readonly listen: PeerAddress;
  readonly peers: ReadonlyMap<NodeId, readonly PeerAddress[]>;
  readonly gate: Gate;
  /** Absent: without TLS, anybody can connect. */
  readonly tls?: PeerTls;
  readonly logger: Logger;
  /** In [0, 1); spreads reconnects over time. */
  readonly random: () => number;
  /** Runs `flush` at the end of this event loop turn. */
  readonly atTurnEnd: (flush: () => void) => void;
}

/** The maximum number of nodes that have introduced themselves and are not listed as peers. */
const INTRODUCED_MAX = 16;

interface Outgoing {
  readonly dialer: Dialer;
  /** The peer is known only by its own introduction. */
  isIntroduced: boolean;
}

interface Incoming {
  readonly socket: Socket;
  readonly hello: Hello;
}

/** The transport of one node. */
export class TcpTransport {
  readonly #init: TcpTransportInit;
  /** For what strangers and broken peers can cause as often as they like. */
  readonly #log: ThrottledLog<'refused' | 'unwelcome' | 'badFrame' | 'silent' | 'handshake'>;
  readonly #tag: Buffer;
  readonly #outgoing = new Map<NodeId, Outgoing>();
  readonly #incoming = new Map<NodeId, Incoming>();
  readonly #accepted = new Set<Socket>();
  #listener: PeerListener | undefined;
  /** Undefined before `start`. */
  #handlers: TransportHandlers | undefined;
  /** This node was removed from the cluster, so it dials nobody. */
  #isAlone = false;
  #closed = false;

  constructor(init: TcpTransportInit) {
    this.#init = init;
    this.#log = new ThrottledLog(init.logger);
    this.#tag = clusterTag(init.clusterId);
    this.setPeers(init.peers);
  }

  /**
   * Sets the peers and their addresses: others are disconnected, new ones dialled. A peer without an address is
   * kept if it is connected. Nodes that introduced themselves stay until they are listed, or are not admitted any
   * more.
   */
  setPeers(peers: ReadonlyMap<NodeId, readonly PeerAddress[]>): void {
    if (this.#isAlone) return;
    for (const [peer, outgoing] of this.#outgoing) {
      if (!peers.has(peer) && !outgoing.isIntroduced) this.#drop(peer);
    }
    for (const [peer, addresses] of peers) {
      const outgoing = this.#outgoing.get(peer);
      if (outgoing !== undefined) {
        outgoing.isIntroduced = false;
        if (addresses.length > 0) outgoing.dialer.list(addresses);
      } else if (peer !== this.#init.nodeId && addresses.length > 0) {
        this.#add(peer, { listed: addresses, isIntroduced: false });
      }
    }
  }

  /** Call when admission changes: peers that are not admitted any more get a refusal and are disconnected. */
  recheck(): void {
    for (const [peer, { socket, hello }] of this.#incoming) {
      const refusal = this.#init.gate.refusalOf(hello);
      if (refusal === undefined || socket.writableEnded) continue;
      refuse(socket, this.#tag, refusal);
      if (this.#outgoing.get(peer)?.isIntroduced === true) this.#drop(peer);
    }
    for (const [peer, { dialer }] of this.#outgoing) {
      const { reached } = dialer;
      const { targetIncarnation, speaks } = this.#init.gate.helloTo(peer);
      const isOther = targetIncarnation !== undefined && reached?.incarnation !== targetIncarnation;
      const isStrange = reached !== undefined && agreedVersion(speaks, reached.speaks) === undefined;
      if (dialer.isConnected && (isOther || isStrange)) dialer.break();
    }
  }

  /** This node was removed from the cluster: disconnects all peers and dials nobody any more. */
  leave(): void {
    this.#isAlone = true;
    for (const peer of this.#outgoing.keys()) this.#drop(peer);
  }

  /** All peers that this node dials. */
  get peers(): Iterable<NodeId> {
    return this.#outgoing.keys();
  }

  #add(
    peer: NodeId,
    known: {
      readonly listed: readonly PeerAddress[];
      readonly said?: PeerAddress;
      readonly isIntroduced: boolean;
    },
  ): void {
    const { gate, logger, random, atTurnEnd, tls } = this.#init;
    const dialer = new Dialer(
      {
        peer,
        tag: this.#tag,
        ...(tls !== undefined && { tls }),
        logger,
        random,
        atTurnEnd,
        hello: () => gate.helloTo(peer),
        onConnected: () => this.#handlers?.onPeerConnected(peer),
        onDisconnected: () => {
          if (this.#closed) return;
          logger.warn({ peer }, 'lost the connection to peer');
          this.#handlers?.onPeerDisconnected(peer);
        },
        onRefused: (refusal) => this.#handlers?.onRefused(peer, refusal),
        mayRetry: () => this.#mayRetry(peer, dialer),
      },
      known.listed,
      known.said,
    );
    this.#outgoing.set(peer, { dialer, isIntroduced: known.isIntroduced });
    if (this.#listener !== undefined) dialer.dial();
  }

  #mayRetry(peer: NodeId, dialer: Dialer): boolean {
    const outgoing = this.#outgoing.get(peer);
    if (this.#closed || outgoing?.dialer !== dialer) return false;
    if (!outgoing.isIntroduced || this.#incoming.has(peer)) return true;
    // The peer is gone; it will introduce itself when it comes back.
    this.#outgoing.delete(peer);
    return false;
  }

  #drop(peer: NodeId): void {
    const outgoing = this.#outgoing.get(peer);
    this.#outgoing.delete(peer);
    outgoing?.dialer.close();
    const socket = this.#incoming.get(peer)?.socket;
    // Let a refused peer read the reason.
    if (socket?.writableEnded === false) socket.destroy();
  }

  /**
   * Listens and starts dialling; from now on it calls `handlers`. Resolves with the port; rejects if the address
   * cannot be bound.
   */
  async start(handlers: TransportHandlers): Promise<number> {
    this.#handlers = handlers;
    const { tls, logger, listen } = this.#init;
    this.#listener = new PeerListener({
      tls,
      logger,
      accepted: (socket, proven) => this.#accept(socket, proven),
      refused: (reason, remoteAddress) =>
        this.#log.warn('handshake', { remoteAddress, reason }, 'refused a connection on the peer port'),
    });
    const port = await this.#listener.start(listen);
    for (const { dialer } of this.#outgoing.values()) dialer.dial();
    return port;
  }

  /** This node can send to `peer`. */
  isConnected(peer: NodeId): boolean {
    return this.#outgoing.get(peer)?.dialer.isConnected ?? false;
  }

  /** `peer` can also answer: after a restart of this node it takes a while until peers dial it again. */
  isConnectedBothWays(peer: NodeId): boolean {
    return this.isConnected(peer) && this.#incoming.has(peer);
  }

  /** Sends one frame. False: it was dropped, because the peer is not connected or too slow. */
  send(to: NodeId, type: PeerFrameType, payload: Uint8Array): boolean {
    return this.#outgoing.get(to)?.dialer.send(type, payload) ?? false;
  }

  async close(): Promise<void> {
    this.#closed = true;
    for (const { dialer } of this.#outgoing.values()) dialer.close();
    for (const socket of this.#accepted) socket.destroy();
    this.#log.close();
    await this.#listener?.close();
  }

  /** @param proven the node that the certificate is for */
  #accept(socket: Socket, proven: NodeId | undefined): void {
    this.#accepted.add(socket);
    void new IncomingConnection({
      socket,
      proven,
      tag: this.#tag,
      introduced: (hello) => this.#welcome(socket, hello),
      received: (hello, type, payload) => this.#handlers?.onFrame(hello, type, payload),
      bad: ({ message: reason }, hello) => {
        const { remoteAddress, remotePort } = socket;
        const fields = { from: hello?.node, remoteAddress, remotePort, reason };
        if (hello === undefined) this.#log.warn('refused', fields, 'refused a connection on the peer port');
        else this.#log.warn('badFrame', fields, 'closed a peer connection: bad frame');
      },
      silent: (hello) => {
        this.#log.warn(
          'silent',
          { from: hello?.node },
          'closed a peer connection: nothing was received for too long',
        );
        // Our own connection to it may be dead as well: dial again.
        if (hello !== undefined) this.#outgoing.get(hello.node)?.dialer.break();
      },
      failed: (err, hello) =>
        this.#init.logger.debug({ from: hello?.node, err }, 'connection from peer failed'),
      closed: (hello) => {
        this.#accepted.delete(socket);
        if (hello === undefined || this.#incoming.get(hello.node)?.socket !== socket) return;
        this.#incoming.delete(hello.node);
        if (!this.#closed) this.#handlers?.onPeerLost(hello.node);
      },
    });
  }

  /** Handles the hello of a dialling peer. Returns the agreed version; undefined: the peer is refused. */
  #welcome(socket: Socket, hello: Hello): number | undefined {
    const { gate, logger } = this.#init;
    const { node, peer: said } = hello;
    const refusal = gate.refusalOf(hello);
    if (refusal !== undefined) {
      const { remoteAddress, remotePort } = socket;
      const fields = { from: node, remoteAddress, remotePort, refused: refusal.code };
      this.#log.warn('unwelcome', fields, refusal.text);
      refuse(socket, this.#tag, refusal);
      this.#handlers?.onUnwelcome(hello, refusal);
      return undefined;
    }
    const known = this.#outgoing.get(node);
    if (known === undefined && !this.#isAlone) {
      const introduced = [...this.#outgoing.values()].filter(({ isIntroduced }) => isIntroduced);
      if (said === undefined || introduced.length >= INTRODUCED_MAX)
        throw new FrameError(`node ${node} cannot be dialled back`);
      logger.info({ peer: node, address: said }, 'a node introduced itself');
      this.#add(node, { listed: [], said, isIntroduced: true });
    }
    socket.write(
      encodeFrame(
        'welcome',
        encodeWelcome({ incarnation: gate.self.incarnation, speaks: gate.versions }),
        this.#tag,
      ),
    );
    const older = this.#incoming.get(node);
    this.#incoming.set(node, { socket, hello });
    older?.socket.destroy();
    known?.dialer.heardFrom(said);
    this.#handlers?.onIntroduced(hello);
    return agreedVersion(gate.versions, hello.speaks);
  }
}
