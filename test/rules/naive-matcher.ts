/**
 * A naive matcher that tries every rule, as a reference for tests. It uses nothing of the product but the type
 * of a rule.
 */
import type { PathStep, RuleDefinition } from '../../src/rules/rule-definition.ts';

function like(pattern: string, value: string): boolean {
  const source = pattern.replaceAll(/[.+?^${}()|[\]\\]/g, String.raw`\$&`).replaceAll('*', '[^]*');
  return new RegExp(`^${source}$`).test(value);
}

const CALLERS = ['user', 'customer', 'apiKey', 'ip'];

function classOf(name: string): number {
  if (CALLERS.includes(name)) return 0;
  if (name === 'tenant') return 2;
  return name === 'tier' ? 3 : 1;
}

/**
 * One text that sorts as specificity does: digits of four classes of descriptors, from the most specific to the least.
 */
function weight({ scope, priority }: RuleDefinition): string {
  if (scope.kind !== 'descriptors') return '';
  let text = String(priority + 5_000_000);
  for (const wanted of [0, 1, 2, 3]) {
    let exact = 0;
    let begun = 0;
    let letters = 0;
    let any = 0;
    for (const { name, value } of scope.conditions) {
      if (classOf(name) !== wanted) continue;
      if (value === '*') any += 1;
      else if (value.endsWith('*')) {
        begun += 1;
        letters += value.length - 1;
      } else exact += 1;
    }
    for (const digit of [exact, begun, letters, any]) text += `.${String(digit).padStart(5, '0')}`;
  }
  return text;
}

export function naiveMatch(
  rules: readonly RuleDefinition[],
  descriptors: ReadonlyMap<string, string>,
): readonly RuleDefinition[] {
  const valueOf = (name: string): string => descriptors.get(name) ?? '';
  const fitting = rules.filter(
    ({ enabled, scope }) =>
      enabled &&
      scope.kind === 'descriptors' &&
      scope.conditions.every(({ name, value }) => valueOf(name) !== '' && like(value, valueOf(name))) &&
      scope.key.every(({ name }) => valueOf(name) !== ''),
  );
  const winning = fitting.filter(
    (rule) =>
      !fitting.some(
        (other) =>
          other.group === rule.group && (rule.shadow || !other.shadow) && weight(other) > weight(rule),
      ),
  );
  return winning.filter(
    (rule) => !winning.some((other) => other.replaces.includes(rule.name) && (rule.shadow || !other.shadow)),
  );
}

function fitsStep(step: PathStep, [key, value]: readonly [string, string]): boolean {
  return step.name === key && (step.value === undefined || like(step.value, value));
}

/** Matches one list of descriptors, one level after the other. */
export function naivePath(
  rules: readonly RuleDefinition[],
  domain: string,
  entries: readonly (readonly [string, string])[],
): RuleDefinition | undefined {
  let left = rules.flatMap((rule) =>
    rule.scope.kind === 'path' && rule.scope.domain === domain ? [{ rule, steps: rule.scope.steps }] : [],
  );
  for (const [depth, entry] of entries.entries()) {
    const next = left.filter(({ steps }) => {
      const step = steps[depth];
      return step !== undefined && fitsStep(step, entry);
    });
    const valueAt = (at: (typeof next)[number]): string | undefined => at.steps[depth]?.value;
    const chosen =
      next.find((one) => valueAt(one) === entry[1]) ??
      next.find((one) => valueAt(one)?.includes('*') === true) ??
      next.find((one) => valueAt(one) === undefined);
    if (chosen === undefined) return undefined;
    left = next.filter((one) => valueAt(one) === valueAt(chosen));
  }
  return left.find(({ steps }) => steps.length === entries.length)?.rule;
}
