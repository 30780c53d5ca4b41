/**
 * Raw connections of attackers. They come from a loopback address of their own, accept any certificate, and time out.
 */
import { connect as connectPlainly, type Socket } from 'node:net';
import { connect } from 'node:tls';

export const ATTACKER_ADDRESS = '127.0.0.66';
const HEARD_BYTES_MAX = 1 << 20;

export interface Address {
  readonly host: string;
  readonly port: number;
}

export interface Credentials {
  readonly cert: string | Buffer;
  readonly key: string | Buffer;
}

export interface OpenOptions {
  /** Client certificate; absent if it shows none. */
  readonly credentials?: Credentials;
  /** A connection without a handshake. */
  readonly plain?: true;
  /** Reads no answer. */
  readonly deaf?: true;
}

export class Intruder {
  readonly socket: Socket;
  heard = '';
  isOpen = false;
  isClosed = false;
  readonly #waiting = new Set<() => void>();

  constructor(address: Address, { credentials, plain, deaf }: OpenOptions = {}) {
    const raw = connectPlainly({ ...address, localAddress: ATTACKER_ADDRESS });
    raw.on('error', () => {});
    const socket = plain === true ? raw : connect({ socket: raw, rejectUnauthorized: false, ...credentials });
    this.socket = socket;
    socket.on('error', () => {});
    socket.once(plain === true ? 'connect' : 'secureConnect', () => {
      this.isOpen = true;
      this.#changed();
    });
    if (deaf !== true)
      socket.on('data', (bytes: Buffer) => {
        if (this.heard.length < HEARD_BYTES_MAX) this.heard += bytes.toString('latin1');
        this.#changed();
      });
    for (const each of new Set([raw, socket]))
      each.once('close', () => {
        this.isClosed = true;
        this.#changed();
      });
  }

  /** False: not within `millisMax`. */
  async until(condition: () => boolean, millisMax: number): Promise<boolean> {
    if (condition()) return true;
    return new Promise((resolve) => {
      const done = (result: boolean): void => {
        clearTimeout(timer);
        this.#waiting.delete(peek);
        resolve(result);
      };
      const peek = (): void => {
        if (condition()) done(true);
      };
      const timer = setTimeout(() => done(condition()), millisMax);
      this.#waiting.add(peek);
    });
  }

  async opened(millisMax: number): Promise<boolean> {
    await this.until(() => this.isOpen || this.isClosed, millisMax);
    return this.isOpen && !this.isClosed;
  }

  async closed(millisMax: number): Promise<boolean> {
    return this.until(() => this.isClosed, millisMax);
  }

  /** Ignores errors of writing to a closed connection: an attacker expects them. */
  say(bytes: string | Buffer): void {
    if (!this.isClosed) this.socket.write(bytes, () => {});
  }

  leave(): void {
    this.socket.destroy();
  }

  #changed(): void {
    for (const peek of this.#waiting) peek();
  }
}

/** Writes everything at once, and waits until the node closes the connection or sends nothing for `quietMillis`. */
export async function sayOnce(
  address: Address,
  bytes: string | Buffer,
  options: OpenOptions & { readonly quietMillis: number },
): Promise<Intruder> {
  const intruder = new Intruder(address, options);
  if (await intruder.opened(10_000)) {
    intruder.say(bytes);
    for (let before = -1; before !== intruder.heard.length && !intruder.isClosed;) {
      before = intruder.heard.length;
      await intruder.until(() => intruder.isClosed, options.quietMillis);
    }
  }
  intruder.leave();
  return intruder;
}

/** Opens `count` connections in steps, and resolves when each is open, closed or has timed out. */
export async function crowd(
  address: Address,
  count: number,
  options: OpenOptions,
): Promise<readonly Intruder[]> {
  const all: Intruder[] = [];
  const STEP = 100;
  while (all.length < count) {
    const step = Array.from(
      { length: Math.min(STEP, count - all.length) },
      () => new Intruder(address, options),
    );
    all.push(...step);
    await Promise.all(step.map(async (intruder) => intruder.opened(2_000)));
  }
  return all;
}
