/** The RESP listener as its node uses it: opened, counted and closed. `connection.ts` handles the commands. */
import { createServer, type Server, type Socket } from 'node:net';
import { createServer as createSecureServer } from 'node:tls';
import type { ApiListener } from '../api/api-listener.ts';
import { addressText } from '../api/node-address.ts';
import { AddressCounts } from '../shedding/address-counts.ts';
import { type Handshakes, listenerOptions, guardListener } from '../tls/handshakes.ts';
import type { ListenerCounts, ListenerState } from './command.ts';
import { COMMAND_TABLE } from './commands/all.ts';
import { Connection } from './connection.ts';
import { RESP_LIMITS, type RespListenerInit, type RespLimits } from './resp-listener-init.ts';
import { FlushPass, ReadPass } from './turn-passes.ts';
import { Session } from './session.ts';

/** TCP keep-alive: a client that disappears without closing its connection is detected after about this time. */
const KEEP_ALIVE_MILLIS = 300_000;
/** Unfinished commands are checked this many times within their time limit. */
const CHECKS_PER_LIMIT = 10;
const TOO_MANY = '-ERR max number of clients reached\r\n';

/** The RESP listener of a node. */
export class RespListener implements ApiListener {
  readonly #init: RespListenerInit;
  readonly #limits: RespLimits;
  readonly #server: Server;
  /** Only with TLS. */
  readonly #handshakes: Handshakes | undefined;
  readonly #flushPass: FlushPass;
  readonly #readPass: ReadPass;
  readonly #addresses: AddressCounts;
  /** Checks for clients that do not finish a command. */
  readonly #checks: NodeJS.Timeout;
  readonly #connections = new Map<Socket, Connection>();
  /** The sockets above the limit, which are being closed. */
  readonly #refused = new Set<Socket>();
  readonly #counts: ListenerCounts = {
    connections: 0,
    rejected: 0,
    commands: 0,
    answers: { granted: 0, denied: 0, invalid: 0, conflict: 0, unavailable: 0 },
  };
  readonly #state: ListenerState;
  #closed: Promise<void> | undefined;

  constructor(init: RespListenerInit) {
    const { node, version, monotonicMillis } = init;
    this.#init = init;
    this.#flushPass = new FlushPass(init.atTurnEnd);
    this.#limits = init.limits ?? RESP_LIMITS;
    const { atTurnEnd } = init;
    this.#readPass = new ReadPass({ monotonicMillis, atTurnEnd });
    this.#addresses = new AddressCounts(this.#limits.connectionsPerAddressMax);
    this.#checks = setInterval(
      () => this.#check(),
      Math.ceil(this.#limits.commandMillisMax / CHECKS_PER_LIMIT),
    );
    this.#checks.unref();
    const { tls, logger } = init;
    const options = { allowHalfOpen: true, noDelay: true };
    const accepted = (socket: Socket): void => this.#accepted(socket);
    if (tls === undefined) this.#server = createServer(options, accepted);
    else {
      const server = createSecureServer({ ...options, ...listenerOptions(tls) }, accepted);
      this.#handshakes = guardListener(server, tls, logger);
      this.#server = server;
    }
    this.#state = {
      node,
      version,
      monotonicMillis,
      startedMillis: monotonicMillis(),
      port: () => this.port,
      connectionsMax: this.#limits.connectionsMax,
      kept: { unfinishedBytes: 0, unreadBytes: 0 },
      counts: this.#counts,
      sessions: () => [...this.#connections.values()].map(({ session }) => session),
      commands: COMMAND_TABLE,
    };
  }

  /** The counters since the listener was created. This object keeps counting. */
  get counts(): ListenerCounts {
    return this.#counts;
  }

  /** The port it listens on; 0 while it does not listen. */
  get port(): number {
    const address = this.#server.address();
    return typeof address === 'object' && address !== null ? address.port : 0;
  }

  /** @throws the system's error if the address cannot be used */
  listen(): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#server.once('error', reject);
      this.#server.listen(this.#init.address, () => {
        this.#server.off('error', reject);
        resolve();
      });
    });
  }

  close(): Promise<void> {
    this.#closed ??= new Promise((resolve) => {
      clearInterval(this.#checks);
      // The callback gets an error if it was not listening, for example because the address was in use. That is fine
      // here.
      this.#server.close(() => resolve());
      // Connections in a TLS handshake have no request yet.
      this.#handshakes?.close();
      for (const connection of this.#connections.values()) connection.leave();
    });
    return this.#closed;
  }

  closeAllConnections(): void {
    for (const socket of [...this.#connections.keys(), ...this.#refused]) socket.destroy();
  }

  async connectionCount(): Promise<number> {
    return this.#connections.size;
  }

  #accepted(socket: Socket): void {
    this.#init.accepted();
    const address = socket.remoteAddress ?? '?';
    const isFull = this.#connections.size >= this.#limits.connectionsMax;
    if (isFull || !this.#addresses.maybeEnter(address)) {
      this.#refuse(socket);
      return;
    }
    socket.once('close', () => this.#addresses.left(address));
    socket.setKeepAlive(true, KEEP_ALIVE_MILLIS);
    this.#counts.connections += 1;
    const session = new Session({
      id: this.#counts.connections,
      address,
      remote: addressText({ host: address, port: socket.remotePort ?? 0 }),
      local: addressText({ host: socket.localAddress ?? '?', port: socket.localPort ?? 0 }),
      nowMillis: this.#init.monotonicMillis(),
    });
    const connection = new Connection({
      socket,
      session,
      listener: this.#state,
      flushPass: this.#flushPass,
      readPass: this.#readPass,
      limits: this.#limits,
      failed: (error) => this.#init.logger.error({ err: error }, 'command failed'),
    });
    this.#connections.set(socket, connection);
    socket.once('close', () => this.#connections.delete(socket));
  }

  #check(): void {
    const now = this.#init.monotonicMillis();
    for (const connection of this.#connections.values()) connection.check(now);
  }

  #refuse(socket: Socket): void {
    this.#counts.rejected += 1;
    this.#refused.add(socket);
    socket.on('error', () => {});
    socket.once('close', () => this.#refused.delete(socket));
    socket.end(TOO_MANY, () => socket.destroy());
  }
}
