/** What a client said of itself on its connection, and what others are told about it. */
import type { RespVersion } from './reply-writer.ts';
import type { Transaction } from './transaction.ts';

export interface SessionInit {
  readonly id: number;
  /** `host:port` of the client, and of this end. */
  readonly remote: string;
  readonly local: string;
  /** Of `remote`, without the port. */
  readonly address: string;
  /** On the monotonic clock. */
  readonly nowMillis: number;
}

export class Session {
  readonly id: number;
  readonly remote: string;
  readonly local: string;
  readonly #address: string;
  readonly #createdMillis: number;
  version: RespVersion = 2;
  /** Of the token that it showed last, which may have been revoked since. */
  tokenId: string | undefined;
  /** Wrong tokens that it showed. */
  authFailures = 0;
  /** Empty until the client names itself. */
  name = '';
  libraryName = '';
  libraryVersion = '';
  /** From `MULTI` until the last answer of `EXEC`. */
  transaction: Transaction | undefined;
  /** That it has subscribed to, a character for each byte. */
  readonly channels = new Set<string>();
  /** No command after the present one counts, and the connection ends when all are answered. */
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

  /** Whose requests are counted together: those of its token, or of where it comes from. */
  get client(): string {
    return this.tokenId ?? this.#address;
  }

  /** It has subscribed, and in its protocol answers and messages look alike: Redis then takes few commands. */
  get isSubscriber(): boolean {
    return this.version === 2 && this.channels.size > 0;
  }

  /** As a new connection would be. */
  reset(): void {
    this.version = 2;
    this.name = '';
    this.tokenId = undefined;
    this.transaction = undefined;
    this.channels.clear();
  }

  /** A line of `CLIENT LIST`. */
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
