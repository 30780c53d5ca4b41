/**
 * Which keys somebody may mean who types a key, or no more than a value in one: those that the rules in force would make of it, and
 * those that nodes counted lately. Pure.
 */
import { USER } from '../api/descriptors.ts';
import { descriptorsIn, GLOBAL_KEY, keyText } from '../api/key-text.ts';
import type { TopKey } from '../api/usage.ts';
import { networkOf, NO_ADDRESS } from '../rules/ip-prefix.ts';
import { type KeyPart, partName, type RuleDefinition, type Scope } from '../rules/rule-definition.ts';
import { isPattern } from '../rules/value-pattern.ts';

/** What operators say of a customer belongs to such a key. */
export const CUSTOMER = 'customer';
/** So many keys are looked up, one request each. */
export const KEYS_SOUGHT_MAX = 20;
const KEY = /^[^=,]+=[^,]+(?:,[^=,]+=[^,]+)*$/;

/** Whether the text is a key as rules write it: then it is the only one that is meant. */
export function isKeyText(text: string): boolean {
  return text === GLOBAL_KEY || KEY.test(text);
}

/** The most likely first, each once, `KEYS_SOUGHT_MAX` at most. @param seen as usage figures name keys */
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

/** One value of a key. `only`: the rule counts no other. */
interface Part {
  readonly name: string;
  readonly only?: string | undefined;
  readonly bits?: KeyPart['bits'];
}

/** Undefined: it would take more than this value to name a key of the rule, or the rule counts no such value. */
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
