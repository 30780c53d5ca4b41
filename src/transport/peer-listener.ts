/**
 * Accepts connections of peers, plain or with TLS certificates that identify them before anything is read. Limits
 * the number of connections.
 */
import { createServer, type Server, type Socket } from 'node:net';
import type { Logger } from 'pino';
import type { NodeId } from '../../raft/types.ts';
import { Handshakes } from '../tls/handshakes.ts';
import type { PeerTls } from '../tls/node-tls.ts';
import { createPeerServer } from '../tls/peer-connections.ts';
import type { PeerAddress } from './dialer.ts';

/** What `PeerListener` needs. */
export interface PeerListenerInit {
  readonly tls: PeerTls | undefined;
  readonly logger: Logger;
  /** @param proven the node that the certificate is for; undefined without TLS */
  readonly accepted: (socket: Socket, proven: NodeId | undefined) => void;
  /** A connection failed before anything was read. Strangers can cause this as often as they like. */
  readonly refused: (reason: string, remoteAddress: string | undefined) => void;
}

/** Far above what a cluster needs, and far below what would exhaust memory or file descriptors. */
const INCOMING_MAX = 256;

/** The peer listener of one node. */
export class PeerListener {
  readonly #init: PeerListenerInit;
  readonly #server: Server;
  readonly #handshakes: Handshakes | undefined;
  /** Connections of nodes that showed a valid certificate. */
  #provenCount = 0;

  constructor(init: PeerListenerInit) {
    this.#init = init;
    const { tls, accepted, refused } = init;
    if (tls === undefined) {
      this.#server = createServer((socket) => accepted(socket, undefined));
      this.#server.maxConnections = INCOMING_MAX;
      return;
    }
    const server = createPeerServer(
      tls,
      (socket, node) => this.#proven(socket, node),
      (socket, reason) => refused(reason, socket.remoteAddress),
    );
    this.#handshakes = new Handshakes(server, { failed: refused });
    this.#server = server;
  }

  /** Starts listening. Resolves with the port; rejects if the address cannot be bound. */
  async start({ host, port }: PeerAddress): Promise<number> {
    const server = this.#server;
    await new Promise<void>((resolve, reject) => {
      server.once('error', reject);
      server.listen(port, host, () => {
        server.off('error', reject);
        resolve();
      });
    });
    server.on('error', (error) => this.#init.logger.error({ err: error }, 'peer listener failed'));
    const address = server.address();
    return typeof address === 'object' && address !== null ? address.port : port;
  }

  /** Resolves when the last accepted connection is closed. */
  async close(): Promise<void> {
    this.#handshakes?.close();
    await new Promise<void>((resolve) => {
      this.#server.close(() => resolve());
    });
  }

  /** Only nodes with a certificate are counted here, so strangers cannot take their places. */
  #proven(socket: Socket, node: NodeId): void {
    if (this.#provenCount >= INCOMING_MAX) {
      this.#init.refused(`more than ${INCOMING_MAX} connections from nodes`, socket.remoteAddress);
      socket.destroy();
      return;
    }
    this.#provenCount += 1;
    socket.once('close', () => {
      this.#provenCount -= 1;
    });
    this.#init.accepted(socket, node);
  }
}
