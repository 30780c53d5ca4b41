/**
 * The connections of the gRPC listener: their number, in total and per address, and the wrong tokens on each. It
 * reads no data.
 */
import type { Socket } from 'node:net';
import { AddressCounts } from '../shedding/address-counts.ts';
import type { GrpcLimits } from './grpc-listener-init.ts';

/** The most wrong tokens on one connection; then it is closed. */
export const FAILURES_MAX = 10;
/** The time to send the last answers before a connection is closed, in milliseconds. */
const LAST_WORD_MILLIS = 1_000;

interface End {
  readonly remoteAddress?: string | undefined;
  readonly remotePort?: number | undefined;
}

interface Connection {
  readonly socket: Socket;
  failures: number;
  /** When this side ended the connection, on the monotonic clock. */
  endedMillis?: number;
}

/** The open connections of a gRPC listener. */
export class Connections {
  readonly #limits: Pick<GrpcLimits, 'connectionsMax' | 'connectionsPerAddressMax'>;
  readonly #addresses: AddressCounts;
  /** By remote address and port. */
  readonly #open = new Map<string, Connection>();

  constructor(limits: Pick<GrpcLimits, 'connectionsMax' | 'connectionsPerAddressMax'>) {
    this.#limits = limits;
    this.#addresses = new AddressCounts(limits.connectionsPerAddressMax);
  }

  /** The number of open connections. */
  get count(): number {
    return this.#open.size;
  }

  /** Counts a connection until it is closed. False: there were too many, and this one was closed. */
  maybeEnter(socket: Socket): boolean {
    const address = socket.remoteAddress ?? '?';
    const end = endOf(socket);
    socket.on('error', () => {});
    if (this.#open.size >= this.#limits.connectionsMax || !this.#addresses.maybeEnter(address)) {
      socket.destroy();
      return false;
    }
    this.#open.set(end, { socket, failures: 0 });
    socket.once('close', () => {
      this.#addresses.left(address);
      if (this.#open.get(end)?.socket === socket) this.#open.delete(end);
    });
    return true;
  }

  /** A wrong token was sent on this connection. */
  failedOnce(end: End): void {
    const connection = this.#open.get(endOf(end));
    if (connection === undefined) return;
    connection.failures += 1;
    if (connection.failures !== FAILURES_MAX) return;
    const { socket } = connection;
    const timer = setTimeout(() => socket.destroy(), LAST_WORD_MILLIS);
    socket.once('close', () => clearTimeout(timer));
  }

  /** Called regularly: closes connections that this side has ended and whose clients do not close them. */
  check(nowMillis: number): void {
    for (const connection of this.#open.values()) {
      const { socket, endedMillis } = connection;
      if (!socket.writableEnded) continue;
      if (endedMillis === undefined) connection.endedMillis = nowMillis;
      else if (nowMillis - endedMillis >= LAST_WORD_MILLIS) socket.destroy();
    }
  }

  /** Closes all connections. */
  closeAll(): void {
    for (const { socket } of this.#open.values()) socket.destroy();
  }
}

function endOf({ remoteAddress, remotePort }: End): string {
  return `${remoteAddress} ${remotePort}`;
}
