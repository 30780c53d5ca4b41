/** Tracks how many bytes are kept for one client, and adds them to the sum of all clients. */

/** The bytes kept for all clients of a listener. */
export interface KeptForAll {
  unfinishedBytes: number;
  unreadBytes: number;
}

/** The bytes kept for one client. */
export class KeptBytes {
  readonly #all: KeptForAll;
  #unfinished = 0;
  #unread = 0;

  constructor(all: KeptForAll) {
    this.#all = all;
  }

  /** Sets the bytes of this client: of an unfinished command, and of answers that the client has not read. */
  are(unfinished: number, unread: number): void {
    this.#all.unfinishedBytes += unfinished - this.#unfinished;
    this.#all.unreadBytes += unread - this.#unread;
    this.#unfinished = unfinished;
    this.#unread = unread;
  }
}
