/**
 * Counts the open requests of each client, in a table of bounded size. While every place of the table belongs to a
 * client with open requests, there is one extra place for all new clients. It refuses no request.
 */
import type { ClientLoad } from '../api/api-listener.ts';

/** The most clients with a place of their own. */
export const CLIENTS_MAX = 4_096;

/** The open requests by client. */
export class ClientLoads {
  readonly #clientsMax: number;
  readonly #byName = new Map<string, ClientLoad>();
  /** The shared place of all clients that have none of their own. */
  readonly #others: ClientLoad = { open: 0 };
  /**
   * This many more clients without a place are accepted before the next search for idle ones, because a search visits
   * the whole table.
   */
  #untilSearch = 0;

  constructor(clientsMax = CLIENTS_MAX) {
    this.#clientsMax = clientsMax;
  }

  /** For tests. */
  get size(): number {
    return this.#byName.size;
  }

  /** The open requests of a client; 0 if it is not known. */
  openOf(client: string): number {
    return this.#byName.get(client)?.open ?? (this.#isFull ? this.#others.open : 0);
  }

  /**
   * The counter of a client. The caller keeps this object and counts down in it, because the client may have lost its
   * place by then.
   */
  of(client: string): ClientLoad {
    const known = this.#byName.get(client);
    if (known !== undefined) return known;
    if (this.#isFull && !this.#maybeForgetIdle()) return this.#others;
    const load: ClientLoad = { open: 0 };
    this.#byName.set(client, load);
    return load;
  }

  get #isFull(): boolean {
    return this.#byName.size >= this.#clientsMax;
  }

  /** Removes idle clients. Returns true if there is a place now. */
  #maybeForgetIdle(): boolean {
    if (this.#untilSearch > 0) {
      this.#untilSearch -= 1;
      return false;
    }
    for (const [name, { open }] of this.#byName) if (open === 0) this.#byName.delete(name);
    // The next search comes after as many requests as this one visited places, so its cost is spread over them.
    this.#untilSearch = this.#byName.size;
    return !this.#isFull;
  }
}
