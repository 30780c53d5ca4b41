/** The connections of the door: how many there may be, of whom, and which showed too many wrong tokens. It reads nothing. */
import type { Socket } from 'node:net';
import { AddressCounts } from '../shedding/address-counts.ts';
import type { GrpcLimits } from './door-init.ts';

/** Wrong tokens on one connection; after as many it is closed. */
export const FAILURES_MAX = 10;
/** How long what is on its way out may take then. */
const LAST_WORD_MILLIS = 1_000;

interface End {
  readonly remoteAddress?: string | undefined;
  readonly remotePort?: number | undefined;
}

interface Connection {
  readonly socket: Socket;
  failures: number;
  /** Since when this side says nothing more. */
  endedMillis?: number;
}

export class Connections {
  readonly #limits: Pick<GrpcLimits, 'connectionsMax' | 'connectionsPerAddressMax'>;
  readonly #addresses: AddressCounts;
  /** By the address of the other end. */
  readonly #open = new Map<string, Connection>();

  constructor(limits: Pick<GrpcLimits, 'connectionsMax' | 'connectionsPerAddressMax'>) {
    this.#limits = limits;
    this.#addresses = new AddressCounts(limits.connectionsPerAddressMax);
  }

  get count(): number {
    return this.#open.size;
  }

  /** Counts it until it is closed; false: it was one too many, and is closed. */
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

  /** A wrong token was shown on it. */
  failedOnce(end: End): void {
    const connection = this.#open.get(endOf(end));
    if (connection === undefined) return;
    connection.failures += 1;
    if (connection.failures !== FAILURES_MAX) return;
    const { socket } = connection;
    const timer = setTimeout(() => socket.destroy(), LAST_WORD_MILLIS);
    socket.once('close', () => clearTimeout(timer));
  }

  /** To be called every now and then: whoever was told that it is over, and does not hang up, is cut off. */
  look(nowMillis: number): void {
    for (const connection of this.#open.values()) {
      const { socket, endedMillis } = connection;
      if (!socket.writableEnded) continue;
      if (endedMillis === undefined) connection.endedMillis = nowMillis;
      else if (nowMillis - endedMillis >= LAST_WORD_MILLIS) socket.destroy();
    }
  }

  closeAll(): void {
    for (const { socket } of this.#open.values()) socket.destroy();
  }
}

function endOf({ remoteAddress, remotePort }: End): string {
  return `${remoteAddress} ${remotePort}`;
}
