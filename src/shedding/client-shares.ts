/**
 * How many open requests each client has, in a table of bounded size. A client that is new while all places are taken by busy
 * ones shares a place with others like it. It refuses nobody.
 */
import type { ClientShare } from '../api/shedding.ts';

export const CLIENTS_MAX = 4_096;

export class ClientShares {
  readonly #clientsMax: number;
  readonly #byName = new Map<string, ClientShare>();
  /** Of all that found no place of their own. */
  readonly #others: ClientShare = { open: 0 };
  /** So many more without a place are not worth another search for idle ones: it looks at the whole table. */
  #untilSearch = 0;

  constructor(clientsMax = CLIENTS_MAX) {
    this.#clientsMax = clientsMax;
  }

  /** For tests. */
  get size(): number {
    return this.#byName.size;
  }

  /** Who is not known has none open. */
  openOf(client: string): number {
    return this.#byName.get(client)?.open ?? (this.#isFull ? this.#others.open : 0);
  }

  /** The share of a client, to be given back by the same object: it may have lost its place by then. */
  of(client: string): ClientShare {
    const known = this.#byName.get(client);
    if (known !== undefined) return known;
    if (this.#isFull && !this.#maybeForgetIdle()) return this.#others;
    const share: ClientShare = { open: 0 };
    this.#byName.set(client, share);
    return share;
  }

  get #isFull(): boolean {
    return this.#byName.size >= this.#clientsMax;
  }

  /** Returns whether there is a place now. */
  #maybeForgetIdle(): boolean {
    if (this.#untilSearch > 0) {
      this.#untilSearch -= 1;
      return false;
    }
    for (const [name, { open }] of this.#byName) if (open === 0) this.#byName.delete(name);
    // The work of a search is spread over as many requests as it looked at places.
    this.#untilSearch = this.#byName.size;
    return !this.#isFull;
  }
}
