/**
 * Patterns of values: text in which `*` matches any text, including none. `PatternIndex` finds the patterns that a
 * value matches without trying all.
 */

/** The texts between the stars of a pattern, in order. A single piece means that there is no star. */
export type Pieces = readonly string[];

/** Splits a pattern at its stars. */
export function piecesOf(pattern: string): Pieces {
  return pattern.split('*');
}

/** The text contains a star. */
export function isPattern(value: string): boolean {
  return value.includes('*');
}

/** Whether the value matches. Takes time linear in its length for each star. */
export function fits(pieces: Pieces, value: string): boolean {
  const first = pieces[0] ?? '';
  if (pieces.length === 1) return value === first;
  const last = pieces.at(-1) ?? '';
  if (value.length < first.length + last.length) return false;
  if (!value.startsWith(first) || !value.endsWith(last)) return false;
  const end = value.length - last.length;
  let at = first.length;
  // Taking the earliest place of each piece leaves the most room for the next.
  for (let i = 1; i < pieces.length - 1; i += 1) {
    const piece = pieces[i] ?? '';
    const found = value.indexOf(piece, at);
    if (found === -1 || found + piece.length > end) return false;
    at = found + piece.length;
  }
  return true;
}

interface Indexed<T> {
  readonly pieces: Pieces;
  readonly item: T;
}

/** Items by pattern. */
export class PatternIndex<T> {
  readonly #exact = new Map<string, T[]>();
  /** Patterns by the text before their first star. */
  readonly #byPrefix = new Map<string, Indexed<T>[]>();
  /** The lengths of these texts, shortest first. */
  #lengths: readonly number[] = [];

  /** Adds an item under a pattern. */
  add(pattern: string, item: T): void {
    const pieces = piecesOf(pattern);
    const [prefix = ''] = pieces;
    if (pieces.length === 1) {
      entryOf(this.#exact, pattern).push(item);
      return;
    }
    entryOf(this.#byPrefix, prefix).push({ pieces, item });
    if (!this.#lengths.includes(prefix.length)) {
      this.#lengths = [...this.#lengths, prefix.length].toSorted((a, b) => a - b);
    }
  }

  /** Calls `take` for each item whose pattern matches the value, exact patterns first. */
  each(value: string, take: (item: T) => void): void {
    for (const item of this.#exact.get(value) ?? []) take(item);
    for (const length of this.#lengths) {
      if (length > value.length) return;
      for (const { pieces, item } of this.#byPrefix.get(value.slice(0, length)) ?? []) {
        if (fits(pieces, value)) take(item);
      }
    }
  }
}

function entryOf<T>(map: Map<string, T[]>, key: string): T[] {
  let entry = map.get(key);
  if (entry === undefined) {
    entry = [];
    map.set(key, entry);
  }
  return entry;
}
