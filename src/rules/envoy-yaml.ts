/**
 * Reads the configuration format of envoyproxy/ratelimit. Each level of nested descriptors that has a limit becomes
 * a rule; a leaf without a limit becomes an unlimited rule. Settings that do not affect limits, such as metrics,
 * are ignored with a note.
 */
import { DESCRIPTOR_NAME_BYTES_MAX } from '../api/question.ts';
import { FIXED_LIMIT_MAX, LIMIT_MAX, WINDOW_MILLIS_MAX } from '../api/rule.ts';
import { UNMATCHED } from '../api/refusals.ts';
import { Fields, itemsOf, mapOf, type TextAt } from './fields.ts';
import { type Findings, knownInstead, quoted } from './mistakes.ts';
import {
  DEFINITION_ID_BYTES_MAX,
  DEFINITIONS_MAX,
  DOMAIN_BYTES_MAX,
  type LimitWindow,
  PATH_STEPS_MAX,
  type PathStep,
  PATTERN_BYTES_MAX,
  REPLACES_MAX,
  UNIT_MILLIS,
} from './rule-definition.ts';
import { inShadow, type Located } from './together.ts';
import { readUnmatched } from './unmatched.ts';
import { isPattern } from './value-pattern.ts';
import type { MapTree, Tree } from './yaml-tree.ts';
import { utf8Length } from '../api/bounded.ts';
import { DIGEST_DIGITS, textDigest } from '../api/text-hash.ts';

/** A document with one of these fields is in this format. */
export const ENVOY_FIELDS = ['domain', 'descriptors'];
/** Fields of the document. Envoy Gateway writes `name` as well, which repeats the `domain`. */
const DOCUMENT_FIELDS = ['name', ...ENVOY_FIELDS, 'shadow_mode', UNMATCHED];
/** Fields that are ignored, with the consequence that the note states. */
const IGNORED: ReadonlyMap<string, string> = new Map([
  ['detailed_metric', 'metrics here have no labels for single requests'],
  ['value_to_metric', 'metrics here have no labels for single requests'],
  ['metadata', 'it is not sent with answers'],
  ['quota_mode', 'the limit always holds by itself, which denies more'],
]);
const DESCRIPTOR_FIELDS = [
  'key',
  'value',
  'rate_limit',
  'descriptors',
  'shadow_mode',
  'share_threshold',
  ...IGNORED.keys(),
];
const LIMIT_FIELDS = [
  'name',
  'replaces',
  'unit',
  'unit_multiplier',
  'requests_per_unit',
  'unlimited',
  'post_paid',
];
const UNITS = [...Object.keys(UNIT_MILLIS), 'year'];

/** The place of a level: its domain and the steps above it. */
interface Above {
  readonly domain: string;
  readonly steps: readonly PathStep[];
}

interface RateLimit {
  readonly name: string;
  readonly windows: readonly LimitWindow[];
  readonly unlimited: boolean;
  readonly whitelisted?: true;
  readonly postPaid?: true;
  readonly replaces: readonly TextAt[];
}
const NO_LIMIT: RateLimit = { name: '', windows: [], unlimited: true, whitelisted: true, replaces: [] };

/** Reads a document of this format; mistakes go to `findings`. */
export function readEnvoyRules(map: MapTree, findings: Findings): readonly Located[] {
  const fields = fieldsOf(map, DOCUMENT_FIELDS, findings);
  if (!fields.has('domain')) findings.mistake(map.at, 'the document needs a domain');
  const domain = fields.text('domain', DOMAIN_BYTES_MAX) ?? '';
  const rules: Located[] = [];
  readLevel(fields, { domain, steps: [] }, rules, findings);
  rules.push(...readUnmatched(fields));
  // The service reads `shadow_mode` at the top but ignores it there. Here it applies to all rules, as it does to
  // each descriptor.
  return fields.flag('shadow_mode') ? rules.map(inShadow) : rules;
}

/** The fields that have a value: Envoy Gateway writes all fields, including empty ones. */
function fieldsOf(map: MapTree, known: readonly string[], findings: Findings): Fields {
  const entries = map.entries.filter(({ key, value }) => !known.includes(key) || !isEmpty(value));
  return new Fields({ ...map, entries }, known, findings);
}

function isEmpty(value: Tree): boolean {
  return value.kind === 'scalar' && (value.value === null || value.value === '');
}

/** Reads all descriptors of one level. True if there are any. */
function readLevel(fields: Fields, above: Above, rules: Located[], findings: Findings): boolean {
  const tree = fields.tree('descriptors');
  if (tree === undefined) return false;
  if (tree.kind !== 'list') {
    findings.mistake(tree.at, 'descriptors must be a list');
    return false;
  }
  const lines = new Map<string, number>();
  for (const item of itemsOf(tree, 'descriptors', DEFINITIONS_MAX, findings)) {
    const map = mapOf(item, 'a descriptor', findings);
    const step = map && readDescriptor(map, above, rules, findings);
    if (step === undefined) continue;
    const identity = JSON.stringify([step.name, step.value ?? null]);
    const line = lines.get(identity);
    if (line === undefined) lines.set(identity, findings.place(item.at).line);
    else {
      const value = step.value === undefined ? 'no value' : `the value ${quoted(step.value)}`;
      findings.mistake(
        item.at,
        `key ${quoted(step.name)} with ${value} appears here twice; first in line ${line}`,
      );
    }
  }
  return tree.items.length > 0;
}

function readDescriptor(
  map: MapTree,
  above: Above,
  rules: Located[],
  findings: Findings,
): PathStep | undefined {
  const fields = fieldsOf(map, DESCRIPTOR_FIELDS, findings);
  for (const [name, meaning] of IGNORED) {
    if (fields.has(name)) findings.note(fields.whereIs(name), `${name} is left out: ${meaning}`);
  }
  const step = readStep(fields, findings);
  const steps = [...above.steps, step ?? { name: '', isCounted: false }];
  if (steps.length > PATH_STEPS_MAX) {
    findings.mistake(map.at, `descriptors may be nested at most ${PATH_STEPS_MAX} deep`);
    return undefined;
  }
  const shadow = fields.flag('shadow_mode');
  const tree = fields.tree('rate_limit');
  const limit = tree && readLimit(tree, findings);
  // Remember the place: this rule goes before those of its sub-levels, as in the document.
  const place = rules.length;
  const hasMore = readLevel(fields, { ...above, steps }, rules, findings);
  if (limit === undefined && (hasMore || tree !== undefined)) return step;
  const rule = ruleOf(above.domain, steps, limit ?? NO_LIMIT, shadow);
  const replacesAt = (limit ?? NO_LIMIT).replaces.map(({ at }) => at);
  if (step !== undefined) rules.splice(place, 0, { definition: rule, at: map.at, replacesAt });
  return step;
}

function readStep(fields: Fields, findings: Findings): PathStep | undefined {
  const name = fields.text('key', DESCRIPTOR_NAME_BYTES_MAX);
  if (!fields.has('key')) findings.mistake(fields.at, 'a descriptor needs a key');
  const value = fields.text('value', PATTERN_BYTES_MAX);
  const isWild = value !== undefined && isPattern(value);
  const isShared = fields.flag('share_threshold');
  if (isShared && !isWild) {
    findings.mistake(fields.whereIs('share_threshold'), 'share_threshold needs a value with a *');
  }
  if (name === undefined) return undefined;
  return {
    name,
    ...(value !== undefined && { value }),
    isCounted: value === undefined || (isWild && !isShared),
  };
}

function readLimit(tree: Tree, findings: Findings): RateLimit | undefined {
  const map = mapOf(tree, 'rate_limit', findings);
  if (map === undefined) return undefined;
  const fields = fieldsOf(map, LIMIT_FIELDS, findings);
  const name = fields.text('name', DEFINITION_ID_BYTES_MAX) ?? '';
  const replaces = readReplaces(fields, findings);
  if (fields.flag('unlimited')) {
    for (const field of ['unit', 'unit_multiplier', 'post_paid'])
      if (fields.has(field))
        findings.mistake(fields.whereIs(field), `an unlimited rate_limit has no ${field}`);
    return { name, windows: [], unlimited: true, replaces };
  }
  const limit = fields.integer('requests_per_unit', 0, FIXED_LIMIT_MAX);
  if (!fields.has('requests_per_unit')) {
    findings.note(map.at, 'without requests_per_unit the limit is 0: all requests are denied');
  }
  const unitMillis = readUnit(fields, findings);
  if (unitMillis === undefined) return undefined;
  const unitsMax = Math.floor(WINDOW_MILLIS_MAX / unitMillis);
  const windowMillis = unitMillis * (fields.integer('unit_multiplier', 1, unitsMax) ?? 1);
  const postPaid = fields.flag('post_paid') ? { postPaid: true as const } : {};
  return { name, windows: [{ limit: limit ?? 0, windowMillis }], unlimited: false, ...postPaid, replaces };
}

function readUnit(fields: Fields, findings: Findings): number | undefined {
  const unit = fields.textAt('unit', DESCRIPTOR_NAME_BYTES_MAX);
  if (!fields.has('unit')) {
    findings.mistake(
      fields.at,
      `rate_limit needs a unit (${Object.keys(UNIT_MILLIS).join(', ')}), or unlimited: true`,
    );
  }
  if (unit === undefined) return undefined;
  const name = unit.text.toLowerCase();
  const found = Object.entries(UNIT_MILLIS).find(([known]) => known === name);
  if (found !== undefined) return found[1];
  if (name === 'year') {
    const days = WINDOW_MILLIS_MAX / UNIT_MILLIS.day;
    findings.mistake(unit.at, `unit year is too long: a window has at most ${days} days`);
  } else {
    findings.mistake(unit.at, `unknown unit ${quoted(unit.text)}; ${knownInstead(name, UNITS)}`);
  }
  return undefined;
}

function readReplaces(fields: Fields, findings: Findings): readonly TextAt[] {
  const tree = fields.tree('replaces');
  if (tree === undefined) return [];
  if (tree.kind !== 'list') {
    findings.mistake(tree.at, 'replaces must be a list, such as [{name: other}]');
    return [];
  }
  return itemsOf(tree, 'replaces', REPLACES_MAX, findings).flatMap((item) => {
    const map = mapOf(item, 'an entry of replaces', findings);
    if (map === undefined) return [];
    const fields = fieldsOf(map, ['name'], findings);
    const name = fields.textAt('name', DEFINITION_ID_BYTES_MAX);
    if (!fields.has('name')) findings.mistake(map.at, 'an entry of replaces needs a name');
    return name ?? [];
  });
}

function ruleOf(
  domain: string,
  steps: readonly PathStep[],
  { name, windows, unlimited, whitelisted, postPaid, replaces }: RateLimit,
  shadow: boolean,
): Located['definition'] {
  const id = shortId(domain, steps);
  return {
    id,
    name,
    scope: { kind: 'path', domain, steps },
    group: id,
    priority: 0,
    windows,
    // A log of that many grants would be too long; Envoy counts in fixed windows as well.
    meter: windows.some(({ limit }) => limit > LIMIT_MAX) ? 'fixedWindow' : 'slidingLog',
    cost: { otherwise: 1, endpoints: [] },
    // Requests from a gateway carry no timestamp.
    clock: 'cluster',
    failMode: 'closed',
    enabled: true,
    shadow,
    unlimited,
    ...(whitelisted === true && { whitelisted }),
    ...(postPaid === true && { postPaid }),
    replaces: replaces.map(({ text }) => text),
  };
}

const SEPARATING = /[%|=]/g;
/** `#` and a digest. */
const HASH_LENGTH = 1 + DIGEST_DIGITS;

/**
 * The id of a rule that is only identified by its place among nested descriptors, such as `domain|key=value|key`. If
 * that is too long: its beginning and a hash of all of it. Grants are stored under it, so it must stay the same in
 * every version.
 */
function shortId(domain: string, steps: readonly PathStep[]): string {
  const parts = steps.map(({ name, value }) =>
    value === undefined ? escaped(name) : `${escaped(name)}=${escaped(value)}`,
  );
  const id = [escaped(domain), ...parts].join('|');
  if (utf8Length(id) <= DEFINITION_ID_BYTES_MAX) return id;
  let start = '';
  let bytes = HASH_LENGTH;
  for (const letter of id) {
    bytes += utf8Length(letter);
    if (bytes > DEFINITION_ID_BYTES_MAX) break;
    start += letter;
  }
  return `${start}#${textDigest(id)}`;
}

function escaped(text: string): string {
  return text.replace(SEPARATING, (sign) => `%${sign.charCodeAt(0).toString(16)}`);
}
