/**
 * A binary heap that returns the first item and can remove any item. It keeps the position of each item, so both take
 * O(log n).
 */
export class Ordered<T> {
  /** No item comes before its parent. The parent of the item at `i` is at `(i - 1) >> 1`. */
  readonly #items: T[] = [];
  readonly #places = new Map<T, number>();
  readonly #isBefore: (a: T, b: T) => boolean;

  /** @param isBefore must not change its result for two items while both are in the heap */
  constructor(isBefore: (a: T, b: T) => boolean) {
    this.#isBefore = isBefore;
  }

  get first(): T | undefined {
    return this.#items[0];
  }

  /** @param item must not be in the heap yet */
  add(item: T): void {
    this.#rise(item, this.#items.length);
  }

  /** Does nothing if the item is not in the heap. */
  delete(item: T): void {
    const place = this.#places.get(item);
    if (place === undefined) return;
    this.#places.delete(item);
    const last = this.#items.pop();
    if (last === undefined || last === item) return;
    this.#rise(last, this.#sink(place));
  }

  /** Places `item` at `place` or higher, moving down the items that come after it. */
  #rise(item: T, place: number): void {
    let to = place;
    while (to > 0) {
      const parent = (to - 1) >> 1;
      const above = this.#items[parent];
      if (above === undefined || !this.#isBefore(item, above)) break;
      this.#put(above, to);
      to = parent;
    }
    this.#put(item, to);
  }

  /** Fills an empty place from below, and returns the place at the bottom that is empty then. */
  #sink(place: number): number {
    for (let empty = place; ;) {
      const left = 2 * empty + 1;
      const [a, b] = [this.#items[left], this.#items[left + 1]];
      if (a === undefined) return empty;
      const isRight = b !== undefined && this.#isBefore(b, a);
      this.#put(isRight ? b : a, empty);
      empty = isRight ? left + 1 : left;
    }
  }

  #put(item: T, place: number): void {
    this.#items[place] = item;
    this.#places.set(item, place);
  }
}
