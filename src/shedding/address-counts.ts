/** How many connections each address has, or calls each caller, so that one of them cannot take all places of a door. It closes none itself. */

export class AddressCounts {
  readonly #most: number;
  readonly #byAddress = new Map<string, number>();

  /** @param most connections of one address */
  constructor(most: number) {
    this.#most = most;
  }

  /** Counts one more, until `left`; false: it has too many, and this one was not counted. */
  maybeEnter(address: string): boolean {
    const count = this.#byAddress.get(address) ?? 0;
    if (count >= this.#most) return false;
    this.#byAddress.set(address, count + 1);
    return true;
  }

  left(address: string): void {
    const count = this.#byAddress.get(address) ?? 0;
    if (count <= 1) this.#byAddress.delete(address);
    else this.#byAddress.set(address, count - 1);
  }
}
