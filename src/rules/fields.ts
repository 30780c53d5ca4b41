/**
 * Reads the fields of a map in a document. Mistakes are reported with their place and the allowed range, and
 * reading goes on. It checks the form of values only; their meaning is for the callers.
 */
import { isBoundedInteger, isBoundedText } from '../api/bounded.ts';
import { type Findings, knownInstead, type Offset, quoted } from './mistakes.ts';
import type { ListTree, MapEntry, MapTree, Tree } from './yaml-tree.ts';

/** Text with its place in the document. */
export interface TextAt {
  readonly text: string;
  readonly at: Offset;
}

/**
 * The fields of one map. A method returns undefined if the field is absent or wrong; if it is wrong, the mistake
 * was reported.
 */
export class Fields {
  readonly at: Offset;
  readonly #entries: ReadonlyMap<string, MapEntry>;
  readonly #findings: Findings;

  /** @param known names of the allowed fields; any other is a mistake */
  constructor(map: MapTree, known: readonly string[], findings: Findings) {
    this.at = map.at;
    this.#findings = findings;
    this.#entries = new Map(map.entries.map((entry) => [entry.key, entry]));
    for (const { key, keyAt } of map.entries) {
      if (known.includes(key)) continue;
      findings.mistake(keyAt, `unknown field ${quoted(key)}; ${knownInstead(key, known)}`);
    }
  }

  has(name: string): boolean {
    return this.#entries.has(name);
  }

  /** Place of the field; of the map if the field is absent. */
  whereIs(name: string): Offset {
    return this.#entries.get(name)?.keyAt ?? this.at;
  }

  /** The value as it was parsed. */
  tree(name: string): Tree | undefined {
    return this.#entries.get(name)?.value;
  }

  /** Text of 1 to `maxBytes` UTF-8 bytes. */
  text(name: string, maxBytes: number): string | undefined {
    return this.textAt(name, maxBytes)?.text;
  }

  textAt(name: string, maxBytes: number): TextAt | undefined {
    const value = this.tree(name);
    return value && textOf(value, name, maxBytes, this.#findings);
  }

  /** An integer from `min` to `max`. */
  integer(name: string, min: number, max: number): number | undefined {
    const value = this.tree(name);
    return value && integerOf(value, name, { min, max }, this.#findings);
  }

  /** A boolean; false if absent. */
  flag(name: string): boolean {
    const value = this.tree(name);
    if (value === undefined) return false;
    if (value.kind === 'scalar' && typeof value.value === 'boolean') return value.value;
    this.#findings.mistake(value.at, `${name} must be true or false, but is ${shown(value)}`);
    return false;
  }

  /** One of the given choices. */
  choice<T extends string>(name: string, choices: readonly T[]): T | undefined {
    const value = this.tree(name);
    if (value === undefined) return undefined;
    const chosen = choices.find((choice) => value.kind === 'scalar' && value.value === choice);
    if (chosen !== undefined) return chosen;
    const instead = value.kind === 'scalar' ? `; ${knownInstead(value.text, choices)}` : '';
    this.#findings.mistake(
      value.at,
      `${name} must be one of ${choices.join(', ')}, but is ${shown(value)}${instead.startsWith('; did') ? instead : ''}`,
    );
    return undefined;
  }

  /** The items of a list; a single value counts as a list of one. */
  oneOrMore(name: string, max: number): readonly Tree[] | undefined {
    const value = this.tree(name);
    if (value === undefined) return undefined;
    if (value.kind !== 'list') return isNothing(value) ? this.#none(name, value) : [value];
    return itemsOf(value, name, max, this.#findings);
  }

  #none(name: string, value: Tree): undefined {
    this.#findings.mistake(value.at, `${name} has no value`);
  }
}

/** The items of a list. Items beyond `max` are reported and left out. */
export function itemsOf(list: ListTree, name: string, max: number, findings: Findings): readonly Tree[] {
  const beyond = list.items[max];
  if (beyond === undefined) return list.items;
  findings.mistake(beyond.at, `${name} may have at most ${max} entries, but has ${list.items.length}`);
  return list.items.slice(0, max);
}

/** The entries of a map. Entries beyond `max` are reported and left out. */
export function entriesOf(map: MapTree, name: string, max: number, findings: Findings): readonly MapEntry[] {
  const beyond = map.entries[max];
  if (beyond === undefined) return map.entries;
  findings.mistake(beyond.keyAt, `${name} may have at most ${max} entries, but has ${map.entries.length}`);
  return map.entries.slice(0, max);
}

/** The value as a map; reports a mistake if it is none. */
export function mapOf(value: Tree, name: string, findings: Findings): MapTree | undefined {
  if (value.kind === 'map') return value;
  findings.mistake(value.at, `${name} must have fields, but is ${shown(value)}`);
  return undefined;
}

/** The value as text. A number, or a word such as `true`, counts as the text that is written. */
export function textOf(value: Tree, name: string, maxBytes: number, findings: Findings): TextAt | undefined {
  if (value.kind === 'scalar' && value.value !== null) {
    return boundedText({ text: value.text, at: value.at }, name, maxBytes, findings);
  }
  findings.mistake(value.at, `${name} must be text of 1 to ${maxBytes} bytes, but is ${shown(value)}`);
  return undefined;
}

/** Checks that a text has 1 to `maxBytes` UTF-8 bytes and is valid Unicode. */
export function boundedText(
  given: TextAt,
  name: string,
  maxBytes: number,
  findings: Findings,
): TextAt | undefined {
  if (isBoundedText(given.text, maxBytes)) return given;
  const bound = `must be text of 1 to ${maxBytes} bytes in Unicode`;
  findings.mistake(given.at, `${name} ${bound}, but is ${quoted(given.text)}`);
  return undefined;
}

/** The value as an integer from `min` to `max`. */
export function integerOf(
  value: Tree,
  name: string,
  { min, max }: { readonly min: number; readonly max: number },
  findings: Findings,
): number | undefined {
  if (value.kind === 'scalar' && isBoundedInteger(value.value, min, max)) return value.value;
  findings.mistake(value.at, `${name} must be an integer from ${min} to ${max}, but is ${shown(value)}`);
  return undefined;
}

/** The field is written without a value. */
export function isNothing(value: Tree): boolean {
  return value.kind === 'scalar' && value.value === null;
}

/** A value as it is shown in a message. */
export function shown(value: Tree): string {
  switch (value.kind) {
    case 'map':
      return 'a map of fields';
    case 'list':
      return `a list of ${value.items.length}`;
    case 'scalar':
      if (value.value === null) return 'nothing';
      return typeof value.value === 'string' ? quoted(value.text) : value.text.slice(0, 64);
    default:
      return value satisfies never;
  }
}
