/** Since when a client has sent more than was read of it. It reads no bytes, and refuses nobody itself. */

/** A client of which something has been unread for so long sends more than the node can do. */
const LATE_MILLIS = 50;
/** What the system gives at most: with as much, there is more. */
const CHUNK_BYTES_MAX = 65_536;

export class Backlog {
  readonly #monotonicMillis: () => number;
  /** Undefined: all is read. */
  #sinceMillis: number | undefined;
  #isChunkFull = false;
  #isLate = false;

  constructor(monotonicMillis: () => number) {
    this.#monotonicMillis = monotonicMillis;
  }

  /** What is read now waited unread for long. */
  get isLate(): boolean {
    return this.#isLate;
  }

  came(bytes: number): void {
    this.#isChunkFull = bytes === CHUNK_BYTES_MAX;
  }

  /** Something is left unread. */
  stands(): void {
    this.#sinceMillis ??= this.#monotonicMillis();
  }

  /** All that came is read. */
  read(): void {
    if (this.#isChunkFull) this.stands();
    else this.#sinceMillis = undefined;
  }

  /** To be called before reading. @param isBusy whether it is for want of time that something is unread */
  look(isBusy: boolean): void {
    const since = this.#sinceMillis;
    this.#isLate = since !== undefined && isBusy && this.#monotonicMillis() - since > LATE_MILLIS;
  }
}
