/**
 * A TCP proxy that misbehaves on command. Each direction can be cut, black-holed, clogged, left unread, delayed,
 * throttled, corrupted or reset while it runs. It does not know the format of the bytes.
 */
import type { HostPort } from '../../src/api/node-address.ts';
import { connect, createServer, type Server, type Socket } from 'node:net';
import type { RandomBelow } from '../../raft/core-state.ts';
import { Lane } from './fault-lane.ts';
import { Direction, holdsBack } from './faults.ts';

/** A client that redials again and again during a long fault leaves old connections behind: the oldest are dropped. */
const CONNECTIONS_MAX = 32;

/** Node sends a FIN before the reset, so the other end may see either of them first. */
function resetSocket(socket: Socket): void {
  // A reset of a connecting socket, or of one with unsent data, would be delayed.
  if (socket.connecting || socket.writableLength > 0) socket.destroy();
  else socket.resetAndDestroy();
}

/** One dialled connection, and the proxy's own connection to the target. */
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
    // The target learns of a connection no sooner than of the first data on it.
    if (this.#upstream === undefined && !holdsBack(forward.faults)) this.#dial();
    this.#forward.changed();
    this.#backward?.changed();
  }

  /** Resets the connection on both sides. */
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
    // The lane decides whether the end of this side is passed on.
    socket.on('error', () => undefined);
    socket.once('close', () => {
      this.#openSockets -= 1;
      if (this.#openSockets === 0) this.#onClosed();
    });
  }
}

export class FaultProxy {
  readonly target: HostPort;
  /** From the client to the target. */
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

  /** Resets all connections. New ones work. */
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
