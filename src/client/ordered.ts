/** What comes first, and whatever is to be taken out before its turn: a binary heap that knows where each item is. O(log n) each. */
export class Ordered<T> {
  /** Nobody comes before its parent, which for that at `i` is at `(i - 1) >> 1`. */
  readonly #items: T[] = [];
  readonly #places = new Map<T, number>();
  readonly #isBefore: (a: T, b: T) => boolean;

  /** @param isBefore what it says of two items must not change while they are here */
  constructor(isBefore: (a: T, b: T) => boolean) {
    this.#isBefore = isBefore;
  }

  get first(): T | undefined {
    return this.#items[0];
  }

  /** @param item one that is not here */
  add(item: T): void {
    this.#rise(item, this.#items.length);
  }

  /** Does nothing where it is not here. */
  delete(item: T): void {
    const place = this.#places.get(item);
    if (place === undefined) return;
    this.#places.delete(item);
    const last = this.#items.pop();
    if (last === undefined || last === item) return;
    this.#rise(last, this.#sink(place));
  }

  /** Puts `item` at `place`, or further up in the place of those that come after it. */
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

  /** Moves what is below an empty place up, and returns the one that is empty then: a last one. */
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
