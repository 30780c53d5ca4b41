/**
 * Reads the short form of rules.yaml: limits by default, by tier, by customer and by endpoint, one number per unit.
 * A customer's own limit applies, else that of its tier, else the default; the limit of an endpoint applies in
 * addition.
 */
import { LIMIT_MAX } from '../api/rule.ts';
import { boundedText, entriesOf, Fields, isNothing, mapOf, shown, type TextAt } from './fields.ts';
import type { Findings } from './mistakes.ts';
import { checkId, UNITS } from './native-rule.ts';
import { readPattern } from './native-scope.ts';
import {
  COMMENT_BYTES_MAX,
  type Condition,
  DEFINITION_ID_BYTES_MAX,
  DEFINITIONS_MAX,
  IPV4_BITS,
  IPV6_BITS,
  keyKind,
  type KeyPart,
  type LimitWindow,
  PATTERN_BYTES_MAX,
  PRIORITY_MAX,
  type RuleDefinition,
  UNIT_MILLIS,
} from './rule-definition.ts';
import type { Located } from './together.ts';
import type { MapTree, Tree } from './yaml-tree.ts';

/** The fields of this form, in a document or in its `rate_limits`. */
export const TABLE_FIELDS = ['default', 'tiers', 'endpoints', 'customers'];

/** Limits are spelt `requests_per_minute` or `per_minute`. */
const LIMIT_FIELDS = UNITS.flatMap((unit) => [`requests_per_${unit}`, `per_${unit}`]);
const BURST_FIELDS = ['burst', 'burst_size'];
const LIMITS_FIELDS = [...LIMIT_FIELDS, ...BURST_FIELDS, 'priority', 'enabled', 'comment', 'description'];

/** For each section: the prefix of rule ids, and the fields that name an entry if the section is a list. */
const SECTIONS = {
  tiers: { id: 'tier', names: ['tier', 'name'] },
  endpoints: { id: 'endpoint', names: ['endpoint', 'path', 'name'] },
  customers: { id: 'customer', names: ['customer', 'customer_id', 'id', 'name'] },
} as const;
type Section = keyof typeof SECTIONS;

/** All limits of this form count by customer. */
const CUSTOMER = [{ name: 'customer' }];
/**
 * What the default counts by if a request has no customer: the first of these that it has; else all such requests
 * together.
 */
const INSTEAD_OF_CUSTOMER: readonly { readonly name: string; readonly key: readonly KeyPart[] }[] = [
  { name: 'user', key: [{ name: 'user' }] },
  { name: 'ip', key: [{ name: 'ip', bits: { ipv4: IPV4_BITS, ipv6: IPV6_BITS } }] },
  { name: 'all', key: [] },
];
/** The group of endpoint limits: they apply in addition to the other limits of a customer. */
const ENDPOINT_GROUP = keyKind([{ name: 'customer' }, { name: 'endpoint' }]);
const METHOD_AND_PATH = /^([A-Z]+) +(\/.*)$/;

/** Reads this form; mistakes go to `findings`. */
export function readTierTable(fields: Fields, findings: Findings): readonly Located[] {
  const rules: Located[] = [];
  const byDefault = fields.tree('default');
  const limits = byDefault && mapOf(byDefault, 'default', findings);
  if (limits !== undefined) {
    const located = readLimits(limits, { text: 'default', at: fields.whereIs('default') }, [], findings);
    rules.push(located, ...withoutCustomer(located));
  }
  for (const section of Object.keys(SECTIONS) as Section[]) {
    const tree = fields.tree(section);
    if (tree !== undefined) rules.push(...readSection(section, tree, findings));
  }
  return rules;
}

/**
 * The default for requests without a customer. The rules are in the group of the default, with lower priorities, so
 * exactly one applies, and none if the customer or its tier has a limit.
 */
function withoutCustomer({ definition, at, replacesAt }: Located): readonly Located[] {
  return INSTEAD_OF_CUSTOMER.map(({ name, key }, i) => {
    const id = `${definition.id}/${name}`;
    const priority = Math.max(-PRIORITY_MAX, definition.priority - 1 - i);
    const scope = { kind: 'descriptors', conditions: [], key } as const;
    return { definition: { ...definition, id, name: id, scope, priority }, at, replacesAt };
  });
}

function readSection(section: Section, tree: Tree, findings: Findings): Located[] {
  if (tree.kind === 'list') return tree.items.flatMap((item) => readListed(section, item, findings) ?? []);
  const map = mapOf(tree, section, findings);
  return entriesOf(map ?? { kind: 'map', at: 0, entries: [] }, section, DEFINITIONS_MAX, findings).flatMap(
    ({ key, keyAt, value }) => {
      const limits = mapOf(value, `the entry ${key}`, findings);
      return (limits && readEntry(section, { text: key, at: keyAt }, limits, findings)) ?? [];
    },
  );
}

function readListed(section: Section, item: Tree, findings: Findings): Located | undefined {
  const map = mapOf(item, `an entry of ${section}`, findings);
  if (map === undefined) return undefined;
  const known: readonly string[] = SECTIONS[section].names;
  const names = map.entries.filter(({ key }) => known.includes(key));
  const [named] = names;
  if (named === undefined || names.length > 1 || named.value.kind !== 'scalar') {
    findings.mistake(map.at, `an entry of ${section} needs exactly one of ${known.join(', ')}`);
    return undefined;
  }
  const limits = { ...map, entries: map.entries.filter((entry) => entry !== named) };
  return readEntry(section, { text: named.value.text, at: named.value.at }, limits, findings);
}

function readEntry(section: Section, name: TextAt, map: MapTree, findings: Findings): Located | undefined {
  const prefix = SECTIONS[section].id;
  const text = boundedText(name, `the name of the ${prefix}`, PATTERN_BYTES_MAX, findings);
  const id = { text: `${prefix}/${name.text}`, at: name.at };
  const conditions = text && conditionsOf(section, text, findings);
  if (
    conditions === undefined ||
    boundedText(id, 'the id', DEFINITION_ID_BYTES_MAX, findings) === undefined
  ) {
    return undefined;
  }
  return readLimits(map, id, conditions, findings);
}

function conditionsOf(section: Section, { text, at }: TextAt, findings: Findings): Condition[] | undefined {
  const name = SECTIONS[section].id;
  const [, method, path = text] = (section === 'endpoints' && METHOD_AND_PATH.exec(text)) || [];
  const value = readPattern({ kind: 'scalar', at, value: path, text: path }, name, findings);
  if (value === undefined) return undefined;
  return [{ name, value }, ...(method === undefined ? [] : [{ name: 'method', value: method }])];
}

function readLimits(map: MapTree, id: TextAt, conditions: readonly Condition[], findings: Findings): Located {
  const fields = new Fields(map, LIMITS_FIELDS, findings);
  checkId(id, findings);
  const { windows, unlimited } = readWindows(fields, findings);
  const burst = readBurst(fields, unlimited, findings);
  const comment = fields.text('comment', COMMENT_BYTES_MAX) ?? fields.text('description', COMMENT_BYTES_MAX);
  const isOfEndpoint = conditions.some(({ name }) => name === 'endpoint');
  const definition: RuleDefinition = {
    id: id.text,
    name: id.text,
    scope: { kind: 'descriptors', conditions, key: CUSTOMER },
    group: isOfEndpoint ? ENDPOINT_GROUP : keyKind(CUSTOMER),
    priority: fields.integer('priority', -PRIORITY_MAX, PRIORITY_MAX) ?? 0,
    windows,
    // Only a token bucket can hold more than its limit.
    meter: burst === undefined ? 'slidingLog' : 'tokenBucket',
    ...(burst !== undefined && { burst }),
    cost: { otherwise: 1, endpoints: [] },
    clock: 'request',
    failMode: 'closed',
    enabled: !fields.has('enabled') || fields.flag('enabled'),
    shadow: false,
    unlimited,
    replaces: [],
    ...(comment !== undefined && { comment }),
  };
  return { definition, at: id.at, replacesAt: [] };
}

/** Reads the limits. One with the value `unlimited` adds no window; if all are, the entry is unlimited. */
function readWindows(
  fields: Fields,
  findings: Findings,
): { readonly windows: readonly LimitWindow[]; readonly unlimited: boolean } {
  const windows: LimitWindow[] = [];
  let stated = 0;
  let limits = 0;
  for (const unit of UNITS) {
    const names = [`requests_per_${unit}`, `per_${unit}`].filter((name) => fields.has(name));
    const [name, other] = names;
    if (other !== undefined) findings.mistake(fields.whereIs(other), `${name} sets this already`);
    const tree = name === undefined ? undefined : fields.tree(name);
    if (name === undefined || tree === undefined) continue;
    stated += 1;
    if (isUnlimited(tree)) continue;
    limits += 1;
    if (tree.kind === 'scalar' && typeof tree.value === 'string') {
      const bound = `an integer from 0 to ${LIMIT_MAX}, or unlimited`;
      findings.mistake(tree.at, `${name} must be ${bound}, but is ${shown(tree)}`);
      continue;
    }
    const limit = fields.integer(name, 0, LIMIT_MAX);
    if (limit !== undefined) windows.push({ limit, windowMillis: UNIT_MILLIS[unit] });
  }
  if (stated === 0) {
    findings.mistake(fields.at, `no limit is stated here; it needs one of ${LIMIT_FIELDS.join(', ')}`);
  }
  return { windows, unlimited: stated > 0 && limits === 0 };
}

function isUnlimited(tree: Tree): boolean {
  return !isNothing(tree) && tree.kind === 'scalar' && (tree.value === 'unlimited' || tree.value === -1);
}

function readBurst(fields: Fields, unlimited: boolean, findings: Findings): number | undefined {
  const [name, other] = BURST_FIELDS.filter((field) => fields.has(field));
  if (other !== undefined) findings.mistake(fields.whereIs(other), `${name} sets this already`);
  if (name === undefined) return undefined;
  const burst = fields.integer(name, 1, LIMIT_MAX);
  if (unlimited) findings.mistake(fields.whereIs(name), 'an unlimited entry has no burst');
  return unlimited ? undefined : burst;
}
