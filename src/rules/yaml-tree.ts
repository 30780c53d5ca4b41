/**
 * Parses YAML (and so JSON) to a tree of maps, lists and scalars, each with its place. Bounds on size, depth and
 * alias expansion keep hostile documents harmless. It knows nothing about rules.
 */
import { type CST, type Document, type LineCounter, type Node } from 'yaml';
import { Composer, isAlias, isMap, isPair, isScalar, isSeq, Lexer, Parser } from 'yaml';
import { type Findings, type Offset, quoted, StopReading } from './mistakes.ts';

/** Deepest nesting of lists and maps: far more than rules need, far less than the stack allows. */
export const DEPTH_MAX = 64;
/** The maximum number of values, counted after alias expansion. */
export const VALUES_MAX = 300_000;
/** The maximum number of tokens. A sensible document of the largest size has fewer. */
const LEXEMES_MAX = 600_000;

const TAG_PREFIX = 'tag:yaml.org,2002:';
/** Tags that change nothing. Any other would change what the text means. */
const KNOWN_TAGS: ReadonlySet<string> = new Set(
  ['str', 'int', 'float', 'bool', 'null', 'map', 'seq'].map((name) => `${TAG_PREFIX}${name}`),
);

/** Text, a number, a boolean or null. */
export interface ScalarTree {
  readonly kind: 'scalar';
  readonly at: Offset;
  readonly value: string | number | boolean | null;
  /** The source text; for a quoted text the text without its quotes. */
  readonly text: string;
}
/** A list. */
export interface ListTree {
  readonly kind: 'list';
  readonly at: Offset;
  readonly items: readonly Tree[];
}
/** A map. */
export interface MapTree {
  readonly kind: 'map';
  readonly at: Offset;
  /** With distinct keys. */
  readonly entries: readonly MapEntry[];
}
/** One field of a map. */
export interface MapEntry {
  readonly key: string;
  readonly keyAt: Offset;
  readonly value: Tree;
}
/** Any node of the tree. */
export type Tree = ScalarTree | ListTree | MapTree;

/**
 * Parses the only document in the text. Mistakes go to `findings`; `lines` gives their places.
 *
 * @throws StopReading if no tree can be made
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

/**
 * The tokens of the first document. This part does not recurse, so it can refuse a depth that the recursive parts
 * could not bear.
 */
function documentToken(text: string, lines: LineCounter, findings: Findings): CST.Token {
  const parser = new Parser(lines.addNewLine);
  let found: CST.Token | undefined;
  const take = (token: CST.Token): void => {
    if (token.type === 'error') findings.mistake(token.offset, `not YAML: ${token.message}`);
    if (token.type === 'directive') {
      findings.mistake(
        token.offset,
        'a directive (a line that begins with %) is not supported; leave it out',
      );
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
      findings.mistake(parser.offset, `lists and maps may be nested at most ${DEPTH_MAX} deep`);
      throw new StopReading();
    }
    if (lexemes > LEXEMES_MAX) {
      findings.mistake(parser.offset, `a document may have at most ${LEXEMES_MAX} tokens`);
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
    // The library's check for repeated keys takes quadratic time.
    uniqueKeys: false,
    prettyErrors: false,
    logLevel: 'silent',
  });
  // Report errors as they come and stop at the bound: half a megabyte of commas would give a list of half a million
  // errors.
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

/** Converts nodes to trees. An alias becomes a copy of its target, and each copy counts towards `VALUES_MAX`. */
class TreeBuilder {
  readonly #findings: Findings;
  /** The node of each anchor at the current place: the last one before it. */
  readonly #anchors = new Map<string, Node>();
  #values = 0;

  constructor(findings: Findings) {
    this.#findings = findings;
  }

  build(node: Node | null | undefined, at: Offset = 0, depth = 0): Tree {
    const place = node?.range?.[0] ?? at;
    this.#values += 1;
    if (this.#values > VALUES_MAX) {
      this.#findings.mistake(
        place,
        `a document may have at most ${VALUES_MAX} values, counting those that aliases repeat`,
      );
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
    this.#findings.mistake(at, `the tag ${tag.replace(TAG_PREFIX, '!!')} is not supported; leave it out`);
  }

  #target(anchor: string, at: Offset, depth: number): Tree {
    const target = this.#anchors.get(anchor);
    if (target !== undefined) return this.build(target, at, depth + 1);
    this.#findings.mistake(at, `no anchor &${anchor.slice(0, 40)} is defined before this alias`);
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
        this.#findings.mistake(key.at, `${quoted(name)} appears here twice; first in line ${line}`);
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

  /**
   * The entries that `<<` merges: the fields of a map, or of all maps in a list. The first map that has a field
   * wins.
   */
  #merged(value: Tree): readonly MapEntry[] {
    const maps = value.kind === 'list' ? value.items : [value];
    return maps.flatMap((map) => {
      if (map.kind === 'map') return map.entries;
      this.#findings.mistake(map.at, '<< must name a map of fields, or a list of them, such as <<: *other');
      return [];
    });
  }
}

/** The merge key of YAML 1.1, which Go programs still read. In quotes it is an ordinary name. */
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
