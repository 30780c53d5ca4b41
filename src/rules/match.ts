/**
 * Which rules apply to a request, and the key that each of them counts it under. Looks at the rules that could match, found by
 * an index made once, never at all of them. It decides no limit.
 */
import { networkOf } from './ip-prefix.ts';
import type { Descriptors } from '../api/descriptors.ts';
import { GLOBAL_KEY, keyText } from '../api/key-text.ts';
import { type DescriptorEntry, PathIndex } from './path-index.ts';
import { type KeyPart, partName, type RuleDefinition } from './rule-definition.ts';
import { compareNumbers, standing } from './specificity.ts';
import { isForUnmatched } from './unmatched.ts';
import { fits, PatternIndex, type Pieces, piecesOf } from './value-pattern.ts';

export interface AppliedRule {
  /** With its `unlimited` and `shadow`: what they mean is for whoever decides. */
  readonly rule: RuleDefinition;
  /** 1 to `KEY_BYTES_MAX` bytes. Of rules without a limit `GLOBAL_KEY`: nothing is counted. */
  readonly key: string;
  /** What the cost of the request is multiplied by. */
  readonly cost: number;
}

/**
 * `unkeyed`: a rule applies, and what it counts by is too long for a key, or no Unicode. Such a request is refused; rules in
 * shadow, which deny nothing, are left out instead.
 */
export type Unkeyed = { readonly kind: 'unkeyed'; readonly rule: RuleDefinition };

/** Why a rule that was asked by name does not apply. `field` is what the caller has to change. */
export interface Unnamed {
  readonly kind: 'unnamed';
  readonly field: 'rule' | 'descriptors';
  readonly message: string;
}

/** None that apply: nothing limits this request. In the order of the document. */
export type Matching =
  | {
      readonly kind: 'rules';
      readonly applied: readonly AppliedRule[];
      /** Some rule is for the request, also where none of them has a limit for it, or one in shadow has no key. */
      readonly isMatched: boolean;
    }
  | Unkeyed;

/** For each list of descriptors, in their order, the rules that apply to it: of those by path one at most. */
export type ListMatching =
  | {
      readonly kind: 'rules';
      readonly applied: readonly (readonly AppliedRule[])[];
      /** Of each list: some rule is for it, also one that is replaced. */
      readonly areMatched: readonly boolean[];
    }
  | Unkeyed;

const NONE_APPLY = { kind: 'rules', applied: [], isMatched: false } as const satisfies Matching;

/** A rule made ready. */
interface Ready {
  readonly rule: RuleDefinition;
  /** Its place in the document. */
  readonly order: number;
  /** Of rules of a group the highest applies. */
  readonly rank: number;
  readonly conditions: readonly { readonly name: string; readonly pieces: Pieces }[];
  readonly key: readonly KeyPart[];
  readonly costs: readonly { readonly pieces: Pieces; readonly cost: number }[];
}

export class RuleMatcher {
  /** Of rules with conditions: by the one of them that the fewest rules share. */
  readonly #byName = new Map<string, PatternIndex<Ready>>();
  readonly #unconditional: Ready[] = [];
  readonly #unnamed = new Set<string>();
  readonly #named = new Map<string, Ready>();
  readonly #paths: PathIndex;

  /** @param definitions with distinct ids, as `readRules` gives them */
  constructor(definitions: readonly RuleDefinition[]) {
    const enabled = definitions.filter((rule) => rule.enabled && !isForUnmatched(rule));
    const all = madeReady(enabled);
    const ready = all.filter(({ rule }) => rule.named !== true);
    for (const one of all) if (one.rule.named === true) this.#named.set(one.rule.id, one);
    for (const one of ready) this.#unnamed.add(one.rule.id);
    const sharers = new Map<string, number>();
    for (const { rule } of ready) {
      for (const id of conditionIds(rule)) sharers.set(id, (sharers.get(id) ?? 0) + 1);
    }
    for (const one of ready) this.#add(one, sharers);
    this.#paths = new PathIndex(enabled);
  }

  /** The rules for a request that is described by names and values. */
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
        ? `rule '${id}' is for all requests that match it: only one with named: true is asked by its id`
        : `rule must be the id of a rule in force with named: true, but there is no '${id}'`;
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
   * The rules for a request of lists of descriptors: one list is one question, and what rules by path replace is looked for in all
   * of them. For rules by names a list is what its entries say; of a name that comes twice, what the last one says.
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

  #add(one: Ready, sharers: ReadonlyMap<string, number>): void {
    const { scope } = one.rule;
    const conditions = scope.kind === 'descriptors' ? scope.conditions : [];
    const ids = conditionIds(one.rule);
    const shares = ids.map((id) => sharers.get(id) ?? 0);
    const pivot = conditions[shares.indexOf(Math.min(...shares))];
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
    .map(({ rule }) => ({ rule, standing: standing(rule) }))
    .toSorted((a, b) => compareNumbers(a.standing, b.standing));
  for (const [i, one] of sorted.entries()) {
    const before = sorted[i - 1];
    if (before !== undefined && compareNumbers(before.standing, one.standing) !== 0) rank += 1;
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

/** All its conditions hold, and all it counts by is there. */
function holds({ conditions, key }: Ready, descriptors: Descriptors): boolean {
  for (const { name, pieces } of conditions) {
    const value = descriptors.get(name);
    if (value === undefined || value === '' || !fits(pieces, value)) return false;
  }
  return key.every(({ name }) => (descriptors.get(name) ?? '') !== '');
}

/** Of each group those of the highest rank. A rule in shadow is beaten by all, and beats none but its like: it is a trial. */
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

/** Which of these rules none of the others replaces. One in shadow replaces nothing that could deny. */
function notReplaced(rules: readonly RuleDefinition[]): (rule: RuleDefinition) => boolean {
  const replaced = new Set<string>();
  const replacedInShadow = new Set<string>();
  for (const { shadow, replaces } of rules) {
    for (const name of replaces) (shadow ? replacedInShadow : replaced).add(name);
  }
  return ({ name, shadow }) => !replaced.has(name) && !(shadow && replacedInShadow.has(name));
}

/** Undefined: it has no key. */
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
