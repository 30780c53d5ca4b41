/**
 * Collects the mistakes in a document, all in one pass: place, message, and a suggestion if a name seems misspelt.
 * The number and length of the messages are bounded.
 */
import type { LineCounter } from 'yaml';

/** At most this many mistakes, and as many notes, are reported for one document. */
export const MISTAKES_MAX = 100;
const QUOTED_LENGTH_MAX = 64;
const MESSAGE_LENGTH_MAX = 400;
/** Characters that would move the cursor of a terminal or end the line. */
const UNPRINTABLE = /[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/gu;
const SUGGESTED_LENGTH_MAX = 40;
/** How many known names are searched for a similar one. */
const PEEKED_AT_MAX = 1_000;

/** A place in a document: index into its text, in UTF-16 units. */
export type Offset = number;

/** A mistake or a note, with its place. */
export interface Mistake {
  /** From 1. */
  readonly line: number;
  /** From 1, in UTF-16 units. */
  readonly column: number;
  readonly message: string;
}

/** Thrown when reading on is useless: there are enough mistakes, or one that hides the rest. */
export class StopReading extends Error {
  readonly code = 'STOP_READING';
  override readonly name = 'StopReading';
}

/** Collects the mistakes and notes of one document. */
export class Findings {
  readonly #lines: LineCounter;
  /** At most `MISTAKES_MAX`. */
  readonly #mistakes: Mistake[] = [];
  readonly #notes: Mistake[] = [];

  constructor(lines: LineCounter) {
    this.#lines = lines;
  }

  /** @throws StopReading if `MISTAKES_MAX` mistakes were reported already */
  mistake(at: Offset, message: string): void {
    if (this.#mistakes.length === MISTAKES_MAX) throw new StopReading();
    this.#mistakes.push({ ...this.place(at), message: oneLine(message) });
  }

  /**
   * Reports something that is allowed, but may not mean what its author expects. Notes beyond `MISTAKES_MAX` are
   * dropped.
   */
  note(at: Offset, message: string): void {
    if (this.#notes.length < MISTAKES_MAX) this.#notes.push({ ...this.place(at), message: oneLine(message) });
  }

  /** Line and column of a place, from 1. */
  place(at: Offset): { readonly line: number; readonly column: number } {
    const { line, col } = this.#lines.linePos(at);
    return { line: Math.max(1, line), column: Math.max(1, col) };
  }

  get hasMistakes(): boolean {
    return this.#mistakes.length > 0;
  }

  /** All mistakes, sorted by place. */
  get mistakes(): readonly Mistake[] {
    return this.#mistakes.toSorted(byPlace);
  }

  /** All notes, sorted by place. */
  get notes(): readonly Mistake[] {
    return this.#notes.toSorted(byPlace);
  }
}

/** Messages quote the document, which may contain any characters. */
function oneLine(message: string): string {
  return printable(message.slice(0, MESSAGE_LENGTH_MAX));
}

/** The text with unprintable characters replaced by `?`. */
export function printable(text: string): string {
  return text.replaceAll(UNPRINTABLE, '?');
}

function byPlace(a: Mistake, b: Mistake): number {
  return a.line - b.line || a.column - b.column;
}

/** A text of the document in quotes, cut if it is long, for a message. */
export function quoted(text: string): string {
  return `'${text.length > QUOTED_LENGTH_MAX ? `${text.slice(0, QUOTED_LENGTH_MAX)}...` : text}'`;
}

/** The end of a message about an unknown name: the most similar known name, or the list of known ones. */
export function knownInstead(name: string, known: readonly string[], some = 20): string {
  const near = nearest(name, known);
  if (near !== undefined) return `did you mean ${near}?`;
  const rest = known.length > some ? `, and ${known.length - some} more` : '';
  return `known here are ${known.slice(0, some).join(', ')}${rest}`;
}

/** The known name with the fewest differing letters, if those are few. Case, `-`, `_` and spaces do not count. */
export function nearest(name: string, known: readonly string[]): string | undefined {
  if (name.length > SUGGESTED_LENGTH_MAX) return undefined;
  const wanted = folded(name);
  let best: string | undefined;
  let distanceMax = Math.max(1, Math.floor(wanted.length / 3));
  for (const candidate of known.slice(0, PEEKED_AT_MAX)) {
    if (Math.abs(candidate.length - name.length) > SUGGESTED_LENGTH_MAX) continue;
    const distance = editDistance(wanted, folded(candidate));
    if (distance > distanceMax || (best !== undefined && distance === distanceMax)) continue;
    best = candidate;
    distanceMax = distance;
  }
  return best;
}

function folded(name: string): string {
  return name.toLowerCase().replaceAll(/[-_ ]/g, '');
}

/** Number of letters to insert, delete, replace, or swap with a neighbour (optimal string alignment distance). */
function editDistance(a: string, b: string): number {
  let before: number[] = [];
  let last = Array.from({ length: b.length + 1 }, (_, j) => j);
  for (let i = 1; i <= a.length; i += 1) {
    const row = [i];
    for (let j = 1; j <= b.length; j += 1) {
      const replaced = (last[j - 1] ?? 0) + (a[i - 1] === b[j - 1] ? 0 : 1);
      let least = Math.min(replaced, (last[j] ?? 0) + 1, (row[j - 1] ?? 0) + 1);
      const isSwapped = i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1];
      if (isSwapped) least = Math.min(least, (before[j - 2] ?? 0) + 1);
      row.push(least);
    }
    before = last;
    last = row;
  }
  return last[b.length] ?? 0;
}
