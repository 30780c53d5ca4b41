/**
 * Remembers rules that were in force recently. One key of a request keeps its id (part-outcome.ts), and other
 * rules may choose another key. So before a retry is charged, the keys that kept the id by earlier rules are asked.
 * This file finds these keys; recall.ts asks them.
 */
import type { Question } from '../api/question.ts';
import type { MatchedBefore } from '../api/rules-change.ts';
import type { RuleDefinition } from '../rules/rule-definition.ts';
import { asOf, type KnownCustomer } from './customer-cache.ts';
import type { MatchedLimit } from './matched-limit.ts';
import { type MatchedRequest, NONE } from './open-request.ts';
import { ownFirst } from './record-read.ts';
import { RuleSet } from './rule-set.ts';
import { type RequestPart, partsOfRequest } from './part-outcome.ts';

interface Kept {
  readonly ruleSet: RuleSet;
  /** On this node's monotonic clock. */
  readonly untilMillis: number;
}

/** The earlier rule sets of one node, each until no grant by it can be remembered any more. */
export class EarlierRuleSets {
  readonly #monotonicMillis: () => number;
  #known: readonly MatchedBefore[] = NONE;
  #kept: readonly Kept[] = NONE;
  /** The rule sets in `#kept`. */
  #ruleSets: readonly RuleSet[] = NONE;
  /** The smallest `untilMillis` in `#kept`. */
  #nextMillis = Infinity;

  constructor(monotonicMillis: () => number) {
    this.#monotonicMillis = monotonicMillis;
  }

  /**
   * The earlier rule sets whose grants may still be remembered, newest first.
   *
   * @param known `matchedBefore` of group 0
   */
  of(known: readonly MatchedBefore[] = NONE): readonly RuleSet[] {
    if (known !== this.#known) this.#learn(known);
    if (this.#ruleSets.length > 0 && this.#monotonicMillis() >= this.#nextMillis) this.#forget();
    return this.#ruleSets;
  }

  #learn(known: readonly MatchedBefore[]): void {
    const before = this.#known;
    this.#known = known;
    // Group 0 repeats the list with every change of anything else.
    if (areEqual(known, before)) return;
    const now = this.#monotonicMillis();
    // A node that has just started does not know when the rules were replaced; it was before now. A partition may
    // have taken the new rules up to one horizon later, and remembers grants for one more.
    this.#keep(
      known.map(({ definitions, horizonMillis }) => ({
        ruleSet: new RuleSet(0, JSON.parse(definitions) as readonly RuleDefinition[]),
        untilMillis: now + 2 * horizonMillis,
      })),
    );
  }

  #forget(): void {
    const now = this.#monotonicMillis();
    this.#keep(this.#kept.filter(({ untilMillis }) => untilMillis > now));
  }

  #keep(kept: readonly Kept[]): void {
    this.#kept = kept;
    this.#ruleSets = kept.map(({ ruleSet }) => ruleSet);
    this.#nextMillis = Math.min(...kept.map(({ untilMillis }) => untilMillis));
  }
}

function areEqual(some: readonly MatchedBefore[], others: readonly MatchedBefore[]): boolean {
  return (
    some.length === others.length &&
    some.every(
      ({ definitions, horizonMillis }, i) =>
        definitions === others[i]?.definitions && horizonMillis === others[i].horizonMillis,
    )
  );
}

/**
 * Whether another key may have kept the id of the question by earlier rules. @param only see `RuleSet.onlyLimitFor`
 */
export function mayHaveMoved(
  question: Question,
  only: MatchedLimit,
  earlier: () => readonly RuleSet[],
): boolean {
  if (question.requestId === undefined) return false;
  return earlier().some((ruleSet) => ruleSet.onlyLimitFor(question)?.userId !== only.userId);
}

/**
 * The parts whose first key kept the id of a request by earlier rules, each once, without the key that keeps it
 * now. For a settlement each entry lists all parts of the request: it was charged before only if every part
 * remembers it.
 *
 * @param nowKept the key that keeps the id now; undefined: no rule limits the request now
 */
export function earlierKeepers(
  ruleSets: readonly RuleSet[],
  { request, customer }: { readonly request: MatchedRequest; readonly customer: KnownCustomer | undefined },
  nowKept: string | undefined,
  partitionOf: (userId: string) => number,
): readonly (readonly [RequestPart, ...RequestPart[]])[] {
  const found = new Map<string, readonly [RequestPart, ...RequestPart[]]>();
  for (const ruleSet of ruleSets) {
    const matched = ruleSet.limitsFor(asOf(request, customer));
    if (matched.kind !== 'limits') continue;
    const parts = partsOfRequest(matched.enforced, partitionOf);
    const ordered = customer === undefined ? parts : ownFirst(parts, customer, partitionOf(customer.key));
    const [first, ...others] = ordered.map(({ partition, limits: [keeper] }): RequestPart => ({
      partition,
      limits: [keeper],
    }));
    if (first === undefined || keyOf(first) === nowKept) continue;
    const all = [first, ...(request.settle === true ? others : NONE)] as const;
    found.set(all.map(keyOf).join('\n'), all);
  }
  return [...found.values()];
}

function keyOf({ limits: [keeper] }: RequestPart): string {
  return keeper.userId;
}
