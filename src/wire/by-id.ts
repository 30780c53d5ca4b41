/**
 * A table of items with ascending ids, most of which are deleted soon. It is a ring and not a Map for the sake of
 * garbage collection: when V8 rehashes a Map, the old table keeps its items and a pointer to the new table. Once
 * one old table is in the old generation, scavenges keep all later tables and their items alive until the next full
 * collection. With a Map a busy node kept half of what it allocated.
 */
const FIRST_CAPACITY = 64;

/** Items by id. */
export class ById<T> {
  /** A ring; its length is a power of two. */
  #items: (T | undefined)[] = emptied(FIRST_CAPACITY);
  /** Index and id of the oldest item; `#span` is the number of ids from there on, including deleted ones. */
  #head = 0;
  #firstId: number;
  #span = 0;
  #size = 0;

  constructor(firstId: number) {
    this.#firstId = firstId;
  }

  /** Number of items. */
  get size(): number {
    return this.#size;
  }

  /** Id of the next item. */
  get nextId(): number {
    return this.#firstId + this.#span;
  }

  /** The oldest item. */
  get first(): T | undefined {
    return this.#span === 0 ? undefined : this.#items[this.#head];
  }

  /** All items, oldest first. */
  get values(): T[] {
    return this.#inOrder().filter((item) => item !== undefined);
  }

  /** Adds an item with the id `nextId`. */
  add(item: T): void {
    if (this.#span === this.#items.length) this.#grow();
    this.#items[(this.#head + this.#span) & (this.#items.length - 1)] = item;
    this.#span += 1;
    this.#size += 1;
  }

  /** The item with this id. */
  get(id: number): T | undefined {
    const ahead = id - this.#firstId;
    if (ahead < 0 || ahead >= this.#span) return undefined;
    return this.#items[(this.#head + ahead) & (this.#items.length - 1)];
  }

  /** Deletes an item. Returns whether it existed. */
  delete(id: number): boolean {
    if (this.get(id) === undefined) return false;
    this.#items[(this.#head + id - this.#firstId) & (this.#items.length - 1)] = undefined;
    this.#size -= 1;
    while (this.#span > 0 && this.#items[this.#head] === undefined) {
      this.#head = (this.#head + 1) & (this.#items.length - 1);
      this.#firstId += 1;
      this.#span -= 1;
    }
    return true;
  }

  #inOrder(): (T | undefined)[] {
    return Array.from({ length: this.#span }, (_, i) => this.get(this.#firstId + i));
  }

  #grow(): void {
    const items = this.#inOrder();
    this.#items = [...items, ...emptied(items.length)];
    this.#head = 0;
  }
}

function emptied(length: number): undefined[] {
  return Array.from({ length }, () => undefined);
}
