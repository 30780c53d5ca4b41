/**
 * Finds the keys that a search text may mean. The text is a key, or a value in one. Candidates are the keys that the
 * rules in force would build from the value, and keys that nodes counted recently. Also parses descriptors as an
 * operator types them. Pure.
 */
import { USER } from '../api/descriptors.ts';
import { descriptorsIn, GLOBAL_KEY, keyText } from '../api/key-text.ts';
import type { TopKey } from '../api/usage.ts';
import { networkOf, NO_ADDRESS } from '../rules/ip-prefix.ts';
import { type KeyPart, partName, type RuleDefinition, type Scope } from '../rules/rule-definition.ts';
import { isPattern } from '../rules/value-pattern.ts';

/** Name of the descriptor whose value is a customer id. */
export const CUSTOMER = 'customer';
/** The maximum number of keys that one search reads. Each costs one request. */
export const KEYS_SOUGHT_MAX = 20;
const KEY = /^[^=,]+=[^,]+(?:,[^=,]+=[^,]+)*$/;

/** Whether the text is a whole key, written as rules write it. Then the search reads this key only. */
export function isKeyText(text: string): boolean {
  return text === GLOBAL_KEY || KEY.test(text);
}

/**
 * The keys that the text may mean, likeliest first, without duplicates, at most `KEYS_SOUGHT_MAX`.
 *
 * @param seen keys of the usage figures
 */
export function keysMeant(
  text: string,
  definitions: readonly RuleDefinition[],
  seen: readonly TopKey[],
): readonly string[] {
  if (isKeyText(text)) return [text];
  const plain = ([USER, CUSTOMER] as const).map((name) => keyText([[name, text]]));
  const ofRules = definitions.map((rule) => keyUnder(rule, text));
  const wanted = text.toLowerCase();
  const ofUsage = seen
    .map(({ key }) => ({ key, values: key === GLOBAL_KEY ? [] : [...descriptorsIn(key).values()] }))
    .filter(({ values }) => values.some((value) => value.toLowerCase().includes(wanted)))
    .sort((a, b) => Number(b.values.includes(text)) - Number(a.values.includes(text)))
    .map(({ key }) => key);
  const exact = [...plain, ...ofRules].filter((key) => key !== undefined);
  return [...new Set([...exact, ...ofUsage])].slice(0, KEYS_SOUGHT_MAX);
}

/** One value of a key. If `only` is set, the rule counts no other value. */
interface Part {
  readonly name: string;
  readonly only?: string | undefined;
  readonly bits?: KeyPart['bits'];
}

/**
 * The key that the rule would build from this value; undefined if the rule needs more values or does not count this
 * one.
 */
function keyUnder({ scope, unlimited, enabled }: RuleDefinition, text: string): string | undefined {
  if (unlimited || !enabled) return undefined;
  const parts = partsOf(scope);
  const [free, ...more] = parts.filter(({ only }) => only === undefined);
  if (more.length > 0 || (free === undefined && !parts.some(({ only }) => only === text))) return undefined;
  const values = parts.map(({ name, only, bits }) => {
    const value = only ?? text;
    return [name, bits === undefined ? value : networkOf(value, bits)] as const;
  });
  if (free?.bits !== undefined && networkOf(text, free.bits) === NO_ADDRESS) return undefined;
  return keyText(values);
}

function partsOf(scope: Scope): readonly Part[] {
  if (scope.kind === 'path')
    return scope.steps
      .filter(({ isCounted }) => isCounted)
      .map(({ name, value = '*' }) => (isPattern(value) ? { name } : { name, only: value }));
  const exact = new Map(
    scope.conditions.filter(({ value }) => !isPattern(value)).map(({ name, value }) => [name, value]),
  );
  return scope.key.map((part) => ({ name: partName(part), only: exact.get(part.name), bits: part.bits }));
}

/**
 * Parses descriptors such as `endpoint=/search, ip=203.0.113.7` to values by name, or returns a text that says what is
 * wrong. The node checks lengths.
 */
export function parsedDescriptors(text: string): Readonly<Record<string, string>> | string {
  const found: Record<string, string> = {};
  for (const part of text.split(',').map((each) => each.trim())) {
    if (part === '') continue;
    const at = part.indexOf('=');
    if (at < 1) return `'${part}' must be name=value`;
    found[part.slice(0, at).trim()] = part.slice(at + 1).trim();
  }
  return found;
}
