/** A map of bounded size. When it is full, a new entry replaces the one that was set longest ago. */
export class RecentMap<K, V> {
  readonly #entries = new Map<K, V>();
  readonly #sizeMax: number;

  /** @param sizeMax largest number of entries; with 0 the map stays empty */
  constructor(sizeMax: number) {
    this.#sizeMax = sizeMax;
  }

  get(key: K): V | undefined {
    return this.#entries.get(key);
  }

  set(key: K, value: V): void {
    this.#entries.delete(key);
    this.#entries.set(key, value);
    if (this.#entries.size <= this.#sizeMax) return;
    const [oldest] = this.#entries.keys();
    if (oldest !== undefined) this.#entries.delete(oldest);
  }

  delete(key: K): void {
    this.#entries.delete(key);
  }

  clear(): void {
    this.#entries.clear();
  }
}
