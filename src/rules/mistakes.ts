/**
 * What is wrong with a document, told all at once: where, what, and what was perhaps meant. Bounded; it decides nothing about
 * rules.
 */
import type { LineCounter } from 'yaml';

/** The most mistakes, and the most notes, that are told of one document. */
export const MISTAKES_MAX = 100;
const QUOTED_LENGTH_MAX = 64;
const MESSAGE_LENGTH_MAX = 400;
/** What would move the cursor of a terminal, or end the line. */
const UNPRINTABLE = /[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/gu;
const SUGGESTED_LENGTH_MAX = 40;
/** Among how many names one is looked for that was perhaps meant. */
const LOOKED_AT_MAX = 1_000;

/** Where something is in a document: an index into its text. */
export type Offset = number;

export interface Mistake {
  /** From 1. */
  readonly line: number;
  /** From 1, in UTF-16 units. */
  readonly column: number;
  readonly message: string;
}

/** Thrown where there is no use in reading on: enough mistakes, or one that hides the rest. */
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

  /** @throws StopReading when there are enough */
  mistake(at: Offset, message: string): void {
    if (this.#mistakes.length === MISTAKES_MAX) throw new StopReading();
    this.#mistakes.push({ ...this.place(at), message: oneLine(message) });
  }

  /** Not wrong, but other than its author may think. Those beyond the bound are left out. */
  note(at: Offset, message: string): void {
    if (this.#notes.length < MISTAKES_MAX) this.#notes.push({ ...this.place(at), message: oneLine(message) });
  }

  place(at: Offset): { readonly line: number; readonly column: number } {
    const { line, col } = this.#lines.linePos(at);
    return { line: Math.max(1, line), column: Math.max(1, col) };
  }

  get hasMistakes(): boolean {
    return this.#mistakes.length > 0;
  }

  /** In order of their places. */
  get mistakes(): readonly Mistake[] {
    return this.#mistakes.toSorted(byPlace);
  }

  get notes(): readonly Mistake[] {
    return this.#notes.toSorted(byPlace);
  }
}

/** Some of it is a text of the document, where anything may stand. */
function oneLine(message: string): string {
  return printable(message.slice(0, MESSAGE_LENGTH_MAX));
}

export function printable(text: string): string {
  return text.replaceAll(UNPRINTABLE, '?');
}

function byPlace(a: Mistake, b: Mistake): number {
  return a.line - b.line || a.column - b.column;
}

/** A text of the document in a message. */
export function quoted(text: string): string {
  return `'${text.length > QUOTED_LENGTH_MAX ? `${text.slice(0, QUOTED_LENGTH_MAX)}...` : text}'`;
}

/** What follows a name that is not known: the nearest one that is, or all there are. */
export function knownInstead(name: string, known: readonly string[], some = 20): string {
  const near = nearest(name, known);
  if (near !== undefined) return `did you mean ${near}?`;
  const rest = known.length > some ? `, and ${known.length - some} more` : '';
  return `known here are ${known.slice(0, some).join(', ')}${rest}`;
}

/** The name that differs by the fewest letters, if those are few; how words are joined or capitalised does not count. */
export function nearest(name: string, known: readonly string[]): string | undefined {
  if (name.length > SUGGESTED_LENGTH_MAX) return undefined;
  const wanted = folded(name);
  let best: string | undefined;
  let distanceMax = Math.max(1, Math.floor(wanted.length / 3));
  for (const candidate of known.slice(0, LOOKED_AT_MAX)) {
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

/** How many letters to insert, leave out, replace, or swap with their neighbour. */
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
