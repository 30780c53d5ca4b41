/** The HTTP door as its node knows it: opened, counted and closed. What goes through it is the server's business. */
import type { FastifyInstance } from 'fastify';
import type { FrontDoor } from '../api/front-door.ts';
import type { HttpDoorInit } from './door-init.ts';
import { createHttpServer } from './server.ts';

export class HttpDoor implements FrontDoor {
  /** For tests, which ask without a connection. */
  readonly app: FastifyInstance;
  readonly #address: HttpDoorInit['address'];

  constructor(init: HttpDoorInit) {
    this.app = createHttpServer(init);
    this.#address = init.address;
  }

  /** @throws the error of the system, if the address cannot be taken */
  async listen(): Promise<void> {
    await this.app.listen(this.#address);
  }

  async close(): Promise<void> {
    await this.app.close();
  }

  closeAllConnections(): void {
    this.app.server.closeAllConnections();
  }

  connectionCount(): Promise<number> {
    return new Promise((resolve) => {
      this.app.server.getConnections((error, count) => resolve(error === null ? count : 0));
    });
  }
}
