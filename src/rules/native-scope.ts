/**
 * Reads `match`, `key` and `cost` of a rule in rules.yaml: which requests it applies to, what it counts them by,
 * and at which cost.
 */
import { DESCRIPTOR_NAME_BYTES_MAX } from '../api/question.ts';
import { COST_MAX } from '../api/request.ts';
import { entriesOf, type Fields, integerOf, isNothing, mapOf, shown, textOf } from './fields.ts';
import { ipBits } from './ip-prefix.ts';
import { type Findings, nearest, type Offset, quoted } from './mistakes.ts';
import {
  type Condition,
  CONDITIONS_MAX,
  ENDPOINT_COSTS_MAX,
  KEY_PARTS_MAX,
  type KeyPart,
  KNOWN_DESCRIPTORS,
  partName,
  PATTERN_BYTES_MAX,
  type RuleCost,
} from './rule-definition.ts';
import { byPattern } from './specificity.ts';
import type { Tree } from './yaml-tree.ts';

const NAME = /^[\p{L}_][\p{L}\p{N}_.:-]*$/u;

/** Reads `match`; the conditions are sorted by name. */
export function readConditions(fields: Fields, findings: Findings): readonly Condition[] {
  const tree = fields.tree('match');
  const map = tree && mapOf(tree, 'match', findings);
  if (map === undefined) return [];
  const conditions: Condition[] = [];
  for (const { key, keyAt, value } of entriesOf(map, 'match', CONDITIONS_MAX, findings)) {
    const isNamed = readName(key, keyAt, findings);
    const pattern = readPattern(value, key, findings);
    if (isNamed && pattern !== undefined) conditions.push({ name: key, value: pattern });
  }
  return conditions.toSorted((a, b) => compareText(a.name, b.name));
}

/** Reads `key`; the parts are sorted by name. */
export function readKey(fields: Fields, findings: Findings): readonly KeyPart[] {
  const parts: KeyPart[] = [];
  for (const tree of fields.oneOrMore('key', KEY_PARTS_MAX) ?? []) {
    const part = readPart(tree, findings);
    if (part === undefined) continue;
    if (parts.some((other) => partName(other) === partName(part))) {
      findings.mistake(tree.at, `key has ${quoted(partName(part))} twice`);
    } else parts.push(part);
  }
  return parts.toSorted((a, b) => compareText(partName(a), partName(b)));
}

/** Reads `cost`: a number, or a map from patterns of endpoints to numbers. */
export function readCost(fields: Fields, findings: Findings): RuleCost {
  const tree = fields.tree('cost');
  const bounds = { min: 1, max: COST_MAX };
  if (tree === undefined) return { otherwise: 1, endpoints: [] };
  if (tree.kind !== 'map') {
    return { otherwise: integerOf(tree, 'cost', bounds, findings) ?? 1, endpoints: [] };
  }
  let otherwise = 1;
  const endpoints: { endpoint: string; cost: number }[] = [];
  for (const { key, keyAt, value } of entriesOf(tree, 'cost', ENDPOINT_COSTS_MAX, findings)) {
    const name: Tree = { kind: 'scalar', at: keyAt, value: key, text: key };
    const endpoint = readPattern(name, 'an endpoint of cost', findings);
    const cost = integerOf(value, `the cost of ${quoted(key)}`, bounds, findings);
    if (endpoint === undefined || cost === undefined) continue;
    if (endpoint === '*') otherwise = cost;
    else endpoints.push({ endpoint, cost });
  }
  endpoints.sort((a, b) => byPattern(a.endpoint, b.endpoint) || compareText(a.endpoint, b.endpoint));
  return { otherwise, endpoints };
}

/** Reads an exact value, or a prefix with a `*` at its end. */
export function readPattern(value: Tree, name: string, findings: Findings): string | undefined {
  const text = textOf(value, name, PATTERN_BYTES_MAX, findings)?.text;
  if (text === undefined) return undefined;
  const star = text.indexOf('*');
  if (star === -1 || star === text.length - 1) return text;
  findings.mistake(value.at, `${name} may have one * and at its end only, but is ${quoted(text)}`);
  return undefined;
}

function readPart(tree: Tree, findings: Findings): KeyPart | undefined {
  if (tree.kind !== 'scalar' || isNothing(tree)) {
    findings.mistake(
      tree.at,
      `key must be the name of a descriptor, or a list of them, but is ${shown(tree)}`,
    );
    return undefined;
  }
  const { text, at } = tree;
  if (text === 'ip' || text.startsWith('ip/')) {
    const bits = ipBits(text);
    if (bits !== undefined) return { name: 'ip', bits };
    findings.mistake(
      at,
      `an address is counted by ip/1 to ip/128, or ip/24/64 for both kinds, but is ${quoted(text)}`,
    );
    return undefined;
  }
  return readName(text, at, findings) ? { name: text } : undefined;
}

function readName(text: string, at: Offset, findings: Findings): boolean {
  if (text.length > DESCRIPTOR_NAME_BYTES_MAX || !NAME.test(text)) {
    findings.mistake(
      at,
      `a descriptor has a name of 1 to ${DESCRIPTOR_NAME_BYTES_MAX} letters, digits and any of _ . : -, ` +
        `and begins with a letter, but is ${quoted(text)}`,
    );
    return false;
  }
  if (KNOWN_DESCRIPTORS.includes(text)) return true;
  const near = nearest(text, KNOWN_DESCRIPTORS);
  if (near !== undefined && text.length > 3) {
    findings.note(at, `${quoted(text)} is a descriptor of your own; did you mean ${near}?`);
  }
  return true;
}

/** Compares by code units, so the order is the same in every locale. */
export function compareText(a: string, b: string): number {
  if (a === b) return 0;
  return a < b ? -1 : 1;
}
