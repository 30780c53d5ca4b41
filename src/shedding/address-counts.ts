/**
 * Counts the connections of each address, or the calls of each client, so that one of them cannot take all places of
 * a listener. It closes none itself.
 */

/** Counts by address, with a bound. */
export class AddressCounts {
  readonly #most: number;
  readonly #byAddress = new Map<string, number>();

  /** @param most the bound for one address */
  constructor(most: number) {
    this.#most = most;
  }

  /** Counts one more until `left`. False: the address is at its bound, and this one was not counted. */
  maybeEnter(address: string): boolean {
    const count = this.#byAddress.get(address) ?? 0;
    if (count >= this.#most) return false;
    this.#byAddress.set(address, count + 1);
    return true;
  }

  /** One less. */
  left(address: string): void {
    const count = this.#byAddress.get(address) ?? 0;
    if (count <= 1) this.#byAddress.delete(address);
    else this.#byAddress.set(address, count - 1);
  }
}
