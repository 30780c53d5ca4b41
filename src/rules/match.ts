/**
 * Finds the rules that apply to a request, and the key that each counts it under. An index that is built once gives
 * the candidates, so not every rule is tried. It decides no limit.
 */
import { networkOf } from './ip-prefix.ts';
import type { Descriptors } from '../api/descriptors.ts';
import { GLOBAL_KEY, keyText } from '../api/key-text.ts';
import { type DescriptorEntry, PathIndex } from './path-index.ts';
import { type KeyPart, partName, type RuleDefinition } from './rule-definition.ts';
import { compareNumbers, precedence } from './specificity.ts';
import { isForUnmatched } from './unmatched.ts';
import { fits, PatternIndex, type Pieces, piecesOf } from './value-pattern.ts';

/** A rule that applies to a request. */
export interface AppliedRule {
  /** The rule. It may be unlimited or in shadow; the caller decides what that means. */
  readonly rule: RuleDefinition;
  /**
   * The key to count under, 1 to `KEY_BYTES_MAX` bytes. `GLOBAL_KEY` for an unlimited rule, which counts nothing.
   */
  readonly key: string;
  /** Factor for the cost of the request. */
  readonly cost: number;
}

/**
 * A rule applies, but its key is too long or not valid Unicode. Such a request is refused. A shadow rule without a
 * key is left out instead, as it denies nothing.
 */
export type Unkeyed = { readonly kind: 'unkeyed'; readonly rule: RuleDefinition };

/**
 * Why a rule that a request asks for by name does not apply. `field` is the field that the caller has to change.
 */
export interface Unnamed {
  readonly kind: 'unnamed';
  readonly field: 'rule' | 'descriptors';
  readonly message: string;
}

/** The rules that apply to a request, in the order of the document. Empty: nothing limits it. */
export type Matching =
  | {
      readonly kind: 'rules';
      readonly applied: readonly AppliedRule[];
      /**
       * At least one rule matches the request, even if none of them gives a limit (a shadow rule may lack a key).
       */
      readonly isMatched: boolean;
    }
  | Unkeyed;

/**
 * The rules that apply to each list of descriptors, in the order of the lists. At most one of each list is a rule
 * by path.
 */
export type ListMatching =
  | {
      readonly kind: 'rules';
      readonly applied: readonly (readonly AppliedRule[])[];
      /** For each list: at least one rule matches it, including replaced ones. */
      readonly areMatched: readonly boolean[];
    }
  | Unkeyed;

const NONE_APPLY = { kind: 'rules', applied: [], isMatched: false } as const satisfies Matching;

/** A rule prepared for matching. */
interface Ready {
  readonly rule: RuleDefinition;
  /** Its index in the document. */
  readonly order: number;
  /** Within a group the rules with the highest rank apply. */
  readonly rank: number;
  readonly conditions: readonly { readonly name: string; readonly pieces: Pieces }[];
  readonly key: readonly KeyPart[];
  readonly costs: readonly { readonly pieces: Pieces; readonly cost: number }[];
}

/** Matches requests against the rules of one rule set. */
export class RuleMatcher {
  /** Rules with conditions, by the name in the condition that the fewest rules have. */
  readonly #byName = new Map<string, PatternIndex<Ready>>();
  readonly #unconditional: Ready[] = [];
  readonly #unnamed = new Set<string>();
  readonly #named = new Map<string, Ready>();
  readonly #paths: PathIndex;

  /** @param definitions with distinct ids, as `readRules` returns them */
  constructor(definitions: readonly RuleDefinition[]) {
    const enabled = definitions.filter((rule) => rule.enabled && !isForUnmatched(rule));
    const all = madeReady(enabled);
    const ready = all.filter(({ rule }) => rule.named !== true);
    for (const one of all) if (one.rule.named === true) this.#named.set(one.rule.id, one);
    for (const one of ready) this.#unnamed.add(one.rule.id);
    const holders = new Map<string, number>();
    for (const { rule } of ready) {
      for (const id of conditionIds(rule)) holders.set(id, (holders.get(id) ?? 0) + 1);
    }
    for (const one of ready) this.#add(one, holders);
    this.#paths = new PathIndex(enabled);
  }

  /** The rules for a request with named descriptors. */
  match(descriptors: Descriptors): Matching {
    const candidates: Ready[] = [...this.#unconditional];
    const take = (one: Ready): void => {
      candidates.push(one);
    };
    if (descriptors.size < this.#byName.size) {
      for (const [name, value] of descriptors) if (value !== '') this.#byName.get(name)?.each(value, take);
    } else {
      for (const [name, index] of this.#byName) {
        const value = descriptors.get(name);
        if (value !== undefined && value !== '') index.each(value, take);
      }
    }
    const matching = candidates.filter((one) => holds(one, descriptors));
    const winners = withoutReplaced(mostSpecific(matching));
    const applied: AppliedRule[] = [];
    for (const one of winners.sort((a, b) => a.order - b.order)) {
      const found = appliedRule(one, descriptors);
      if (found !== undefined) applied.push(found);
      else if (!one.rule.shadow) return { kind: 'unkeyed', rule: one.rule };
    }
    return { kind: 'rules', applied, isMatched: matching.length > 0 };
  }

  /** The one rule that a request asks for by its id. */
  matchNamed(id: string, descriptors: Descriptors): Matching | Unnamed {
    const one = this.#named.get(id);
    if (one === undefined) {
      const message = this.#unnamed.has(id)
        ? `rule '${id}' applies to all requests that match it; only a rule with named: true can be asked for by its id`
        : `rule must be the id of a rule in force with named: true, but there is no '${id}'; to state a limit yourself, write 100/60000ms`;
      return { kind: 'unnamed', field: 'rule', message };
    }
    const missing = one.key.find(({ name }) => (descriptors.get(name) ?? '') === '');
    if (missing !== undefined) {
      const message = `descriptors must have ${missing.name}: rule '${id}' counts by it`;
      return { kind: 'unnamed', field: 'descriptors', message };
    }
    if (!holds(one, descriptors))
      return { kind: 'unnamed', field: 'descriptors', message: `descriptors must match rule '${id}'` };
    const applied = appliedRule(one, descriptors);
    return applied === undefined
      ? { kind: 'unkeyed', rule: one.rule }
      : { kind: 'rules', applied: [applied], isMatched: true };
  }

  /**
   * The rules for a request of lists of descriptors. Rules by path are looked up for each list, and `replaces`
   * works across all lists. For rules by name a list is a set of descriptors; if a name appears twice, the last
   * value counts.
   */
  matchLists(domain: string, lists: readonly (readonly DescriptorEntry[])[]): ListMatching {
    const found = lists.map((entries) => this.#paths.find(domain, entries));
    const isHeld = notReplaced(found.flatMap((match) => match?.rule ?? []));
    const applied: (readonly AppliedRule[])[] = [];
    const areMatched: boolean[] = [];
    const hasNames = this.#unconditional.length > 0 || this.#byName.size > 0;
    for (const [i, entries] of lists.entries()) {
      const byNames = hasNames
        ? this.match(new Map(entries.map(({ key, value }) => [key, value])))
        : NONE_APPLY;
      if (byNames.kind === 'unkeyed') return byNames;
      const match = found[i];
      areMatched.push(match !== undefined || byNames.isMatched);
      if (match === undefined || !isHeld(match.rule)) {
        applied.push(byNames.applied);
        continue;
      }
      const { rule, counted } = match;
      const key = keyOf(rule, counted);
      if (key === undefined && !rule.shadow) return { kind: 'unkeyed', rule };
      const byPath = key === undefined ? [] : [{ rule, key, cost: rule.cost.otherwise }];
      applied.push([...byPath, ...byNames.applied]);
    }
    return { kind: 'rules', applied, areMatched };
  }

  #add(one: Ready, holders: ReadonlyMap<string, number>): void {
    const { scope } = one.rule;
    const conditions = scope.kind === 'descriptors' ? scope.conditions : [];
    const ids = conditionIds(one.rule);
    const counts = ids.map((id) => holders.get(id) ?? 0);
    const pivot = conditions[counts.indexOf(Math.min(...counts))];
    if (pivot === undefined) {
      this.#unconditional.push(one);
      return;
    }
    let index = this.#byName.get(pivot.name);
    if (index === undefined) {
      index = new PatternIndex();
      this.#byName.set(pivot.name, index);
    }
    index.add(pivot.value, one);
  }
}

function madeReady(rules: readonly RuleDefinition[]): readonly Ready[] {
  const flat = rules.flatMap((rule, order) =>
    rule.scope.kind === 'descriptors' ? [{ rule, order, scope: rule.scope }] : [],
  );
  let rank = 0;
  const ranks = new Map<RuleDefinition, number>();
  const sorted = flat
    .map(({ rule }) => ({ rule, precedence: precedence(rule) }))
    .toSorted((a, b) => compareNumbers(a.precedence, b.precedence));
  for (const [i, one] of sorted.entries()) {
    const before = sorted[i - 1];
    if (before !== undefined && compareNumbers(before.precedence, one.precedence) !== 0) rank += 1;
    ranks.set(one.rule, rank);
  }
  return flat.map(({ rule, order, scope }) => ({
    rule,
    order,
    rank: ranks.get(rule) ?? 0,
    conditions: scope.conditions.map(({ name, value }) => ({ name, pieces: piecesOf(value) })),
    key: scope.key,
    costs: rule.cost.endpoints.map(({ endpoint, cost }) => ({ pieces: piecesOf(endpoint), cost })),
  }));
}

function conditionIds({ scope }: RuleDefinition): readonly string[] {
  return scope.kind === 'descriptors' ? scope.conditions.map(({ name, value }) => `${name}\n${value}`) : [];
}

/** All conditions hold, and all descriptors of its key are present. */
function holds({ conditions, key }: Ready, descriptors: Descriptors): boolean {
  for (const { name, pieces } of conditions) {
    const value = descriptors.get(name);
    if (value === undefined || value === '' || !fits(pieces, value)) return false;
  }
  return key.every(({ name }) => (descriptors.get(name) ?? '') !== '');
}

/**
 * The rules of the highest rank in each group. Shadow rules must not change what others decide: they lose to all
 * rules of higher rank, and beat only other shadow rules.
 */
function mostSpecific(matching: readonly Ready[]): readonly Ready[] {
  const highest = new Map<string, number>();
  const highestEnforced = new Map<string, number>();
  for (const { rule, rank } of matching) {
    highest.set(rule.group, Math.max(rank, highest.get(rule.group) ?? 0));
    if (!rule.shadow) highestEnforced.set(rule.group, Math.max(rank, highestEnforced.get(rule.group) ?? 0));
  }
  return matching.filter(
    ({ rule, rank }) => rank === (rule.shadow ? highest : highestEnforced).get(rule.group),
  );
}

function withoutReplaced(rules: readonly Ready[]): Ready[] {
  const isHeld = notReplaced(rules.map(({ rule }) => rule));
  return rules.filter(({ rule }) => isHeld(rule));
}

/** Finds the rules that none of the others replaces. A shadow rule replaces only shadow rules. */
function notReplaced(rules: readonly RuleDefinition[]): (rule: RuleDefinition) => boolean {
  const replaced = new Set<string>();
  const replacedInShadow = new Set<string>();
  for (const { shadow, replaces } of rules) {
    for (const name of replaces) (shadow ? replacedInShadow : replaced).add(name);
  }
  return ({ name, shadow }) => !replaced.has(name) && !(shadow && replacedInShadow.has(name));
}

/** The rule with its key and cost. Undefined: the key is too long or not valid Unicode. */
function appliedRule(one: Ready, descriptors: Descriptors): AppliedRule | undefined {
  const key = keyOf(
    one.rule,
    one.key.map((part) => [partName(part), valueOf(part, descriptors)]),
  );
  return key === undefined ? undefined : { rule: one.rule, key, cost: costOf(one, descriptors) };
}

function keyOf(
  { unlimited }: RuleDefinition,
  parts: readonly (readonly [name: string, value: string])[],
): string | undefined {
  return unlimited ? GLOBAL_KEY : keyText(parts);
}

function valueOf({ name, bits }: KeyPart, descriptors: Descriptors): string {
  const value = descriptors.get(name) ?? '';
  return bits === undefined ? value : networkOf(value, bits);
}

function costOf({ rule, costs }: Ready, descriptors: Descriptors): number {
  const endpoint = costs.length === 0 ? undefined : descriptors.get('endpoint');
  if (endpoint === undefined) return rule.cost.otherwise;
  return costs.find(({ pieces }) => fits(pieces, endpoint))?.cost ?? rule.cost.otherwise;
}
