/** The HTTP door as its node knows it: opened, counted and closed. What goes through it is the server's business. */
import type { Server as TlsServer } from 'node:tls';
import type { FastifyInstance } from 'fastify';
import type { FrontDoor } from '../api/front-door.ts';
import type { Handshakes } from '../tls/handshakes.ts';
import { guardDoor } from '../tls/secure-door.ts';
import { HTTP_LIMITS, type HttpDoorInit } from './door-init.ts';
import { createHttpServer } from './server.ts';

export class HttpDoor implements FrontDoor {
  /** For tests, which ask without a connection. */
  readonly app: FastifyInstance;
  readonly #init: HttpDoorInit;
  /** With TLS only. */
  readonly #handshakes: Handshakes | undefined;

  constructor(init: HttpDoorInit) {
    this.app = createHttpServer(init);
    this.#init = init;
    const { tls, logger } = init;
    this.#handshakes = tls && guardDoor(this.app.server as unknown as TlsServer, tls, logger);
  }

  /** The settings are others. All but this one are asked for at every use. */
  settingsChanged(): void {
    const { settings, limits = HTTP_LIMITS } = this.#init;
    this.app.server.keepAliveTimeout = settings().keepAliveMillis ?? limits.keepAliveMillis;
  }

  /** Where it listens; 0 while it does not. */
  get port(): number {
    const address = this.app.server.address();
    return typeof address === 'object' && address !== null ? address.port : 0;
  }

  /** @throws the error of the system, if the address cannot be taken */
  async listen(): Promise<void> {
    await this.app.listen(this.#init.address);
  }

  async close(): Promise<void> {
    const closed = this.app.close();
    // They have asked for nothing yet, and nobody counts them.
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
