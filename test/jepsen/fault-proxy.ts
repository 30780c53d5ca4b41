/**
 * A TCP proxy that misbehaves on command: each direction of what passes through it can be cut, black-holed, clogged,
 * never read, delayed, throttled, corrupted or broken off, while it runs. It knows nothing of what the bytes mean.
 */
import type { HostPort } from '../../src/api/node-address.ts';
import { connect, createServer, type Server, type Socket } from 'node:net';
import type { RandomBelow } from '../../raft/core-state.ts';
import { Lane } from './fault-lane.ts';
import { Direction, holdsBack } from './faults.ts';

/** Whoever dials again and again during a long fault leaves the oldest connections behind. */
const CONNECTIONS_MAX = 32;

/** Node sends a FIN before the reset, so the other end may see either of them first. */
function resetSocket(socket: Socket): void {
  // A reset would wait for the connection, or for what is still to be sent.
  if (socket.connecting || socket.writableLength > 0) socket.destroy();
  else socket.resetAndDestroy();
}

/** One dialler, and the target on its behalf. */
class Connection {
  readonly #proxy: FaultProxy;
  readonly #client: Socket;
  readonly #random: RandomBelow;
  readonly #forward: Lane;
  #backward: Lane | undefined;
  #upstream: Socket | undefined;
  #openSockets = 1;
  readonly #onClosed: () => void;

  constructor(proxy: FaultProxy, client: Socket, random: RandomBelow, onClosed: () => void) {
    this.#proxy = proxy;
    this.#client = client;
    this.#random = random;
    this.#onClosed = onClosed;
    this.#watch(client);
    this.#forward = new Lane(proxy.forward, random, client, this.reset);
    this.changed();
  }

  changed(): void {
    const { forward, backward } = this.#proxy;
    if (forward.faults.cut === true || backward.faults.cut === true) {
      this.reset();
      return;
    }
    // The target hears of a connection no sooner than of what is sent on it.
    if (this.#upstream === undefined && !holdsBack(forward.faults)) this.#dial();
    this.#forward.changed();
    this.#backward?.changed();
  }

  /** Breaks the connection off on both sides. */
  readonly reset = (): void => {
    this.#forward.stop();
    this.#backward?.stop();
    if (this.#upstream !== undefined) resetSocket(this.#upstream);
    resetSocket(this.#client);
  };

  #dial(): void {
    const upstream = connect({ ...this.#proxy.target, noDelay: true, allowHalfOpen: true });
    this.#upstream = upstream;
    this.#openSockets += 1;
    this.#watch(upstream);
    upstream.once('connect', () => {
      upstream.off('error', this.reset);
      this.#forward.connectTo(upstream);
      this.#backward = new Lane(this.#proxy.backward, this.#random, upstream, this.reset);
      this.#backward.connectTo(this.#client);
    });
    upstream.once('error', this.reset);
  }

  #watch(socket: Socket): void {
    // Whether it matters is the lane's business.
    socket.on('error', () => undefined);
    socket.once('close', () => {
      this.#openSockets -= 1;
      if (this.#openSockets === 0) this.#onClosed();
    });
  }
}

export class FaultProxy {
  readonly target: HostPort;
  /** From who dials to the target. */
  readonly forward = new Direction(() => this.#changed());
  readonly backward = new Direction(() => this.#changed());
  readonly #random: RandomBelow;
  readonly #server: Server;
  readonly #connections = new Set<Connection>();

  private constructor(target: HostPort, random: RandomBelow) {
    this.target = target;
    this.#random = random;
    this.#server = createServer({ allowHalfOpen: true, noDelay: true }, (client) => this.#accept(client));
  }

  /** Listens on a free port of the loopback interface. */
  static async listen(target: HostPort, random: RandomBelow): Promise<FaultProxy> {
    const proxy = new FaultProxy(target, random);
    await new Promise<void>((resolve, reject) => {
      proxy.#server.once('error', reject);
      proxy.#server.listen(0, '127.0.0.1', resolve);
    });
    return proxy;
  }

  get port(): number {
    const address = this.#server.address();
    return typeof address === 'object' && address !== null ? address.port : 0;
  }

  get connectionCount(): number {
    return this.#connections.size;
  }

  /** Breaks all connections off; new ones work. */
  reset(): void {
    for (const connection of this.#connections) connection.reset();
  }

  async close(): Promise<void> {
    const closed = new Promise((resolve) => {
      this.#server.close(resolve);
    });
    this.reset();
    await closed;
  }

  #accept(client: Socket): void {
    const connection: Connection = new Connection(this, client, this.#random, () =>
      this.#connections.delete(connection),
    );
    this.#connections.add(connection);
    const [oldest] = this.#connections;
    if (this.#connections.size > CONNECTIONS_MAX) oldest?.reset();
  }

  #changed(): void {
    for (const connection of this.#connections) connection.changed();
  }
}
