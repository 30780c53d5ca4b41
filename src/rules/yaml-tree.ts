/**
 * Text to a tree of maps, lists and scalars, each with its place. YAML, and so JSON, within bounds: of size, depth, and what
 * aliases make of it. Knows nothing of rules.
 */
import { type CST, type Document, type LineCounter, type Node } from 'yaml';
import { Composer, isAlias, isMap, isPair, isScalar, isSeq, Lexer, Parser } from 'yaml';
import { type Findings, type Offset, quoted, StopReading } from './mistakes.ts';

/** How deep lists and maps may lie in each other: far more than any rule needs, far less than a stack holds. */
export const DEPTH_MAX = 64;
/** Values, with those that aliases repeat. */
export const VALUES_MAX = 300_000;
/** Words, signs and spaces: a document of the largest size has fewer, if it says anything. */
const LEXEMES_MAX = 600_000;

const TAG_PREFIX = 'tag:yaml.org,2002:';
/** What is there anyway. All others make something else of what is written. */
const KNOWN_TAGS: ReadonlySet<string> = new Set(
  ['str', 'int', 'float', 'bool', 'null', 'map', 'seq'].map((name) => `${TAG_PREFIX}${name}`),
);

export interface ScalarTree {
  readonly kind: 'scalar';
  readonly at: Offset;
  readonly value: string | number | boolean | null;
  /** As it is written, where it is no quoted text. */
  readonly text: string;
}
export interface ListTree {
  readonly kind: 'list';
  readonly at: Offset;
  readonly items: readonly Tree[];
}
export interface MapTree {
  readonly kind: 'map';
  readonly at: Offset;
  /** With distinct keys. */
  readonly entries: readonly MapEntry[];
}
export interface MapEntry {
  readonly key: string;
  readonly keyAt: Offset;
  readonly value: Tree;
}
export type Tree = ScalarTree | ListTree | MapTree;

/**
 * The tree of the one document in the text. What is wrong goes to `findings`, which knows places by `lines`.
 *
 * @throws StopReading if nothing can be made of it
 */
export function readTree(text: string, lines: LineCounter, findings: Findings): Tree {
  const document = composed(documentToken(text, lines, findings), findings);
  if (findings.hasMistakes) throw new StopReading();
  const { contents } = document;
  if (contents === null || (isScalar(contents) && contents.value === null)) {
    findings.mistake(0, 'the document is empty');
    throw new StopReading();
  }
  return new TreeBuilder(findings).build(contents);
}

/** The first document as tokens, without recursion; a depth that recursion could not bear is refused here. */
function documentToken(text: string, lines: LineCounter, findings: Findings): CST.Token {
  const parser = new Parser(lines.addNewLine);
  let found: CST.Token | undefined;
  const take = (token: CST.Token): void => {
    if (token.type === 'error') findings.mistake(token.offset, `not YAML: ${token.message}`);
    if (token.type === 'directive') {
      findings.mistake(token.offset, 'a line that begins with % is not known here; leave it out');
    }
    if (token.type !== 'document') return;
    if (found === undefined) {
      found = token;
      return;
    }
    findings.mistake(token.offset, 'a second document begins here; a file holds one');
    throw new StopReading();
  };
  let lexemes = 0;
  for (const lexeme of new Lexer().lex(text)) {
    for (const token of parser.next(lexeme)) take(token);
    lexemes += 1;
    if (parser.stack.length > DEPTH_MAX) {
      findings.mistake(parser.offset, `lists and maps lie in each other at most ${DEPTH_MAX} deep`);
      throw new StopReading();
    }
    if (lexemes > LEXEMES_MAX) {
      findings.mistake(parser.offset, `a document has at most ${LEXEMES_MAX} words, signs and spaces`);
      throw new StopReading();
    }
  }
  for (const token of parser.end()) take(token);
  if (found !== undefined) return found;
  if (!findings.hasMistakes) findings.mistake(0, 'the document is empty');
  throw new StopReading();
}

function composed(token: CST.Token, findings: Findings): Document.Parsed {
  const composer = new Composer({
    version: '1.2',
    schema: 'core',
    // Its own look for repeated keys compares each with each.
    uniqueKeys: false,
    prettyErrors: false,
    logLevel: 'silent',
  });
  // Told one by one and up to a bound, instead of all in a list: half a megabyte of commas has half a million of them.
  Object.assign(composer, {
    onError(source: number | readonly number[] | { readonly offset: number }, _: string, message: string) {
      findings.mistake(offsetOf(source), `not YAML: ${message}`);
    },
  });
  const [document] = [...composer.next(token), ...composer.end()];
  if (document === undefined) throw new StopReading();
  for (const { pos, message } of [...document.errors, ...document.warnings]) {
    findings.mistake(pos[0], `not YAML: ${message}`);
  }
  return document;
}

function offsetOf(source: number | readonly number[] | { readonly offset: number }): Offset {
  if (typeof source === 'number') return source;
  return 'offset' in source ? source.offset : (source[0] ?? 0);
}

/** Nodes to trees. An alias becomes another copy of what it stands for, and all copies are counted. */
class TreeBuilder {
  readonly #findings: Findings;
  /** What each anchor stands for where the reader is: the last one before. */
  readonly #anchors = new Map<string, Node>();
  #values = 0;

  constructor(findings: Findings) {
    this.#findings = findings;
  }

  build(node: Node | null | undefined, at: Offset = 0, depth = 0): Tree {
    const place = node?.range?.[0] ?? at;
    this.#values += 1;
    if (this.#values > VALUES_MAX) {
      this.#findings.mistake(place, `a document has at most ${VALUES_MAX} values, with those aliases repeat`);
      throw new StopReading();
    }
    if (depth > DEPTH_MAX) {
      this.#findings.mistake(place, `with its aliases, the document is more than ${DEPTH_MAX} deep`);
      throw new StopReading();
    }
    if (isAlias(node)) return this.#target(node.source, place, depth);
    if (isMap<Node, Node | null>(node) || isSeq<Node>(node) || isScalar(node)) {
      this.#checkTag(node.tag, place);
      if (node.anchor !== undefined) this.#anchors.set(node.anchor, node);
    }
    if (isMap<Node, Node | null>(node)) return this.#map(node.items, place, depth);
    if (isSeq<Node>(node)) {
      const items = node.items.map((item) => this.build(isPair(item) ? null : item, place, depth + 1));
      return { kind: 'list', at: place, items };
    }
    return scalar(node, place);
  }

  #checkTag(tag: string | undefined, at: Offset): void {
    if (tag === undefined || KNOWN_TAGS.has(tag)) return;
    this.#findings.mistake(
      at,
      `tags such as ${tag.replace(TAG_PREFIX, '!!')} are not known here; leave it out`,
    );
  }

  #target(anchor: string, at: Offset, depth: number): Tree {
    const target = this.#anchors.get(anchor);
    if (target !== undefined) return this.build(target, at, depth + 1);
    this.#findings.mistake(at, `nothing before this is called &${anchor.slice(0, 40)}`);
    return { kind: 'scalar', at, value: null, text: '' };
  }

  #map(pairs: readonly { key: Node; value: Node | null }[], at: Offset, depth: number): MapTree {
    const entries: MapEntry[] = [];
    const merged: MapEntry[] = [];
    const seen = new Map<string, Offset>();
    for (const pair of pairs) {
      const key = this.build(pair.key, at, depth + 1);
      const value = this.build(pair.value, key.at, depth + 1);
      if (key.kind !== 'scalar') {
        this.#findings.mistake(key.at, 'the name of a field must be text');
        continue;
      }
      const name = key.text;
      const first = seen.get(name);
      if (first !== undefined) {
        const { line } = this.#findings.place(first);
        this.#findings.mistake(key.at, `${quoted(name)} stands here twice; first in line ${line}`);
        continue;
      }
      seen.set(name, key.at);
      if (isMergeKey(pair.key)) merged.push(...this.#merged(value));
      else entries.push({ key: name, keyAt: key.at, value });
    }
    const fields = new Map<string, MapEntry>();
    for (const entry of [...entries, ...merged]) if (!fields.has(entry.key)) fields.set(entry.key, entry);
    return { kind: 'map', at, entries: [...fields.values()] };
  }

  /** What `<<` brings along: the fields of a map, or of all maps in a list. The first map that has a field counts. */
  #merged(value: Tree): readonly MapEntry[] {
    const maps = value.kind === 'list' ? value.items : [value];
    return maps.flatMap((map) => {
      if (map.kind === 'map') return map.entries;
      this.#findings.mistake(map.at, '<< must name a map of fields, or a list of them, such as <<: *other');
      return [];
    });
  }
}

/** The merge key of YAML 1.1, which programs in Go still read. In quotes it is a name like any other. */
function isMergeKey(key: Node): boolean {
  return isScalar(key) && key.value === '<<' && key.type === 'PLAIN';
}

function scalar(node: Node | null | undefined, at: Offset): ScalarTree {
  const value: unknown = isScalar(node) ? node.value : null;
  const source = isScalar(node) && typeof node.source === 'string' ? node.source : '';
  if (typeof value === 'string') return { kind: 'scalar', at, value, text: value };
  const isPlain = typeof value === 'number' || typeof value === 'boolean' || value === null;
  return { kind: 'scalar', at, value: isPlain ? value : source, text: source };
}
