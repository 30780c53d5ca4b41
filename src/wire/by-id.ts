/**
 * Items under ids that count up; most are deleted soon after they are added. It is a ring, and not a Map: whenever V8 rehashes a Map, the old
 * table keeps its items and a pointer to the new table. Once one old table is in the old generation, a scavenge keeps the tables after it and
 * their items alive, until the next full collection. A busy node so kept half of what it allocated.
 */
const FIRST_CAPACITY = 64;

export class ById<T> {
  /** A ring, of a power of two. */
  #items: (T | undefined)[] = emptied(FIRST_CAPACITY);
  /** Where the oldest is, and under which id; how many ids there are from it on. */
  #head = 0;
  #firstId: number;
  #span = 0;
  #size = 0;

  constructor(firstId: number) {
    this.#firstId = firstId;
  }

  get size(): number {
    return this.#size;
  }

  /** Of what is added next. */
  get nextId(): number {
    return this.#firstId + this.#span;
  }

  /** The oldest. */
  get first(): T | undefined {
    return this.#span === 0 ? undefined : this.#items[this.#head];
  }

  get values(): T[] {
    return this.#inOrder().filter((item) => item !== undefined);
  }

  /** Under `nextId`. */
  add(item: T): void {
    if (this.#span === this.#items.length) this.#grow();
    this.#items[(this.#head + this.#span) & (this.#items.length - 1)] = item;
    this.#span += 1;
    this.#size += 1;
  }

  get(id: number): T | undefined {
    const ahead = id - this.#firstId;
    if (ahead < 0 || ahead >= this.#span) return undefined;
    return this.#items[(this.#head + ahead) & (this.#items.length - 1)];
  }

  /** Says whether it was there. */
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
