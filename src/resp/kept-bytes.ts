/** What a door keeps for one client, as a part of what it keeps for all. */

export interface KeptForAll {
  unfinishedBytes: number;
  unreadBytes: number;
}

export class KeptBytes {
  readonly #all: KeptForAll;
  #unfinished = 0;
  #unread = 0;

  constructor(all: KeptForAll) {
    this.#all = all;
  }

  /** @param unfinished bytes of a command that is not finished @param unread bytes of answers that the client has not taken */
  are(unfinished: number, unread: number): void {
    this.#all.unfinishedBytes += unfinished - this.#unfinished;
    this.#all.unreadBytes += unread - this.#unread;
    this.#unfinished = unfinished;
    this.#unread = unread;
  }
}
