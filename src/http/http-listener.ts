/** The HTTP listener as its node uses it: opened, counted and closed. `server.ts` handles the requests. */
import type { Server as TlsServer } from 'node:tls';
import type { FastifyInstance } from 'fastify';
import type { ApiListener } from '../api/api-listener.ts';
import { type Handshakes, guardListener } from '../tls/handshakes.ts';
import { HTTP_LIMITS, type HttpListenerInit } from './http-listener-init.ts';
import { createHttpServer } from './server.ts';

/** The HTTP listener of a node. */
export class HttpListener implements ApiListener {
  /** For tests, which send requests without a connection. */
  readonly app: FastifyInstance;
  readonly #init: HttpListenerInit;
  /** Only with TLS. */
  readonly #handshakes: Handshakes | undefined;

  constructor(init: HttpListenerInit) {
    this.app = createHttpServer(init);
    this.#init = init;
    const { tls, logger } = init;
    this.#handshakes = tls && guardListener(this.app.server as unknown as TlsServer, tls, logger);
  }

  /** Applies the one setting that is not read at every use. */
  settingsChanged(): void {
    const { settings, limits = HTTP_LIMITS } = this.#init;
    this.app.server.keepAliveTimeout = settings().keepAliveMillis ?? limits.keepAliveMillis;
  }

  /** The port it listens on; 0 while it does not listen. */
  get port(): number {
    const address = this.app.server.address();
    return typeof address === 'object' && address !== null ? address.port : 0;
  }

  /** @throws the system's error if the address cannot be used */
  async listen(): Promise<void> {
    await this.app.listen(this.#init.address);
  }

  async close(): Promise<void> {
    const closed = this.app.close();
    // Connections in a TLS handshake have no request yet and are not counted, so they can be closed now.
    this.#handshakes?.close();
    await closed;
  }

  closeAllConnections(): void {
    this.#handshakes?.close();
    this.app.server.closeAllConnections();
  }

  connectionCount(): Promise<number> {
    return new Promise((resolve) => {
      this.app.server.getConnections((error, count) => resolve(error === null ? count : 0));
    });
  }
}
