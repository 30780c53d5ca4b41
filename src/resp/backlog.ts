/** Measures how long a client's bytes have waited unread. It reads no bytes and refuses no request itself. */

/** If bytes of a client have waited unread for this long, the client sends more than the node can handle. */
const LATE_MILLIS = 50;
/** The most bytes that one read of a socket returns. If a read returns this many, more bytes are probably waiting. */
const CHUNK_BYTES_MAX = 65_536;

/** The unread bytes of one client. */
export class Backlog {
  readonly #monotonicMillis: () => number;
  /** When something became unread, on the monotonic clock. Undefined: everything is read. */
  #sinceMillis: number | undefined;
  #isChunkFull = false;
  #isLate = false;

  constructor(monotonicMillis: () => number) {
    this.#monotonicMillis = monotonicMillis;
  }

  /** True if the bytes that are read now have waited too long. */
  get isLate(): boolean {
    return this.#isLate;
  }

  /** The socket delivered a chunk. */
  came(bytes: number): void {
    this.#isChunkFull = bytes === CHUNK_BYTES_MAX;
  }

  /** Something stays unread. */
  stands(): void {
    this.#sinceMillis ??= this.#monotonicMillis();
  }

  /** Everything that came was read. */
  read(): void {
    if (this.#isChunkFull) this.stands();
    else this.#sinceMillis = undefined;
  }

  /**
   * Updates `isLate`; called before reading. @param isBusy true if bytes are unread because the node has no CPU time
   */
  check(isBusy: boolean): void {
    const since = this.#sinceMillis;
    this.#isLate = since !== undefined && isBusy && this.#monotonicMillis() - since > LATE_MILLIS;
  }
}
