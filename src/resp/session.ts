/** The properties of one connection: its protocol version, token, names, channels and transaction. */
import type { RespVersion } from './reply-writer.ts';
import type { Transaction } from './transaction.ts';

/** The parts that a session is built from. */
export interface SessionInit {
  readonly id: number;
  /** `host:port` of the client, and of this end. */
  readonly remote: string;
  readonly local: string;
  /** The host of `remote`. */
  readonly address: string;
  /** The current time, on the monotonic clock. */
  readonly nowMillis: number;
}

/** The properties of one connection. */
export class Session {
  readonly id: number;
  readonly remote: string;
  readonly local: string;
  readonly #address: string;
  readonly #createdMillis: number;
  version: RespVersion = 2;
  /** The id of the token that it sent last. The token may have been revoked since. */
  tokenId: string | undefined;
  /** The number of wrong tokens. */
  authFailures = 0;
  /** Empty until the client sets it. */
  name = '';
  libraryName = '';
  libraryVersion = '';
  /** From `MULTI` until the last answer of `EXEC`. */
  transaction: Transaction | undefined;
  /** The subscribed channels; one character for each byte. */
  readonly channels = new Set<string>();
  /** Later commands are ignored, and the connection ends when all answers are sent. */
  isLeaving = false;
  lastCommand = '';
  lastMillis: number;

  constructor({ id, remote, local, address, nowMillis }: SessionInit) {
    this.id = id;
    this.remote = remote;
    this.local = local;
    this.#address = address;
    this.#createdMillis = nowMillis;
    this.lastMillis = nowMillis;
  }

  /** The client that its requests are counted under for load shedding: the id of its token, or its address. */
  get client(): string {
    return this.tokenId ?? this.#address;
  }

  /**
   * True if it has subscribed on RESP2. There, answers and messages have the same form, so Redis allows only a few
   * commands.
   */
  get isSubscriber(): boolean {
    return this.version === 2 && this.channels.size > 0;
  }

  /** Resets it to the state of a new connection. */
  reset(): void {
    this.version = 2;
    this.name = '';
    this.tokenId = undefined;
    this.transaction = undefined;
    this.channels.clear();
  }

  /** Its line in `CLIENT LIST`. */
  describe(nowMillis: number): string {
    const seconds = (sinceMillis: number): number => Math.floor((nowMillis - sinceMillis) / 1000);
    const fields = {
      id: this.id,
      addr: this.remote,
      laddr: this.local,
      name: this.name,
      age: seconds(this.#createdMillis),
      idle: seconds(this.lastMillis),
      db: 0,
      cmd: this.lastCommand.toLowerCase() || 'NULL',
      user: 'default',
      resp: this.version,
      'lib-name': this.libraryName,
      'lib-ver': this.libraryVersion,
    };
    return Object.entries(fields)
      .map(([name, value]) => `${name}=${value}`)
      .join(' ');
  }
}
