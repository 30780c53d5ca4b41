/**
 * Where peers connect to this node: plainly, or with certificates by which it knows them before it reads anything. Bounds how
 * many there are; what they say is not its business.
 */
import { createServer, type Server, type Socket } from 'node:net';
import type { Logger } from 'pino';
import type { NodeId } from '../../raft/types.ts';
import { Handshakes } from '../tls/handshakes.ts';
import type { PeerTls } from '../tls/node-tls.ts';
import { createPeerServer } from '../tls/peer-connections.ts';
import type { PeerAddress } from './dialer.ts';

export interface PeerListenerInit {
  readonly tls: PeerTls | undefined;
  readonly logger: Logger;
  /** @param proven the node that its certificate is for; undefined without TLS */
  readonly accepted: (socket: Socket, proven: NodeId | undefined) => void;
  /** A connection came to nothing before anything was read. May be told as often as strangers like. */
  readonly refused: (reason: string, remoteAddress: string | undefined) => void;
}

/** Far above what a cluster needs, far below what would exhaust memory or descriptors. */
const INCOMING_MAX = 256;

export class PeerListener {
  readonly #init: PeerListenerInit;
  readonly #server: Server;
  readonly #handshakes: Handshakes | undefined;
  /** Of nodes that showed their certificate. */
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

  /** Rejects if the address cannot be bound. Resolves with the port listened on. */
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

  /** Resolves when the last connection is closed, also those that were accepted. */
  async close(): Promise<void> {
    this.#handshakes?.close();
    await new Promise<void>((resolve) => {
      this.#server.close(() => resolve());
    });
  }

  /** Strangers never come here, so none of them takes the place of a node. */
  #proven(socket: Socket, node: NodeId): void {
    if (this.#provenCount >= INCOMING_MAX) {
      this.#init.refused(`more than ${INCOMING_MAX} connections of nodes`, socket.remoteAddress);
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
