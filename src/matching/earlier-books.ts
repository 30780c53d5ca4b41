/**
 * How requests were matched by rules that were in force until lately. The id of a request is kept by one of its keys (share-outcome.ts),
 * so other rules may lead a retry to another key: then the former one is asked first. This file says who that is, and asks nobody.
 */
import type { Question } from '../api/question.ts';
import type { MatchedBefore } from '../api/rules-change.ts';
import type { RuleDefinition } from '../rules/rule-definition.ts';
import { asOf, type KnownCustomer } from './customer-cache.ts';
import type { MatchedLimit } from './matched-limit.ts';
import { type MatchedRequest, NONE } from './open-request.ts';
import { ownFirst } from './record-read.ts';
import { RuleBook } from './rule-book.ts';
import { type Share, sharesOf } from './share-outcome.ts';

interface Kept {
  readonly book: RuleBook;
  /** On this node's monotonic clock. */
  readonly untilMillis: number;
}

export class EarlierBooks {
  readonly #monotonicMillis: () => number;
  #known: readonly MatchedBefore[] = NONE;
  #kept: readonly Kept[] = NONE;
  /** Those of `#kept`. */
  #books: readonly RuleBook[] = NONE;
  /** The least `untilMillis` of `#kept`. */
  #nextMillis = Infinity;

  constructor(monotonicMillis: () => number) {
    this.#monotonicMillis = monotonicMillis;
  }

  /** Those by which a grant may have been found whose id is still remembered, newest first. */
  of(known: readonly MatchedBefore[] = NONE): readonly RuleBook[] {
    if (known !== this.#known) this.#learn(known);
    if (this.#books.length > 0 && this.#monotonicMillis() >= this.#nextMillis) this.#forget();
    return this.#books;
  }

  #learn(known: readonly MatchedBefore[]): void {
    const before = this.#known;
    this.#known = known;
    // Whatever else group 0 says comes with the same again.
    if (areEqual(known, before)) return;
    const now = this.#monotonicMillis();
    // When they were replaced is not known to a node that has just started: it was not later than now. A partition may have taken
    // the new rules up to a horizon later.
    this.#keep(
      known.map(({ definitions, horizonMillis }) => ({
        book: new RuleBook(0, JSON.parse(definitions) as readonly RuleDefinition[]),
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
    this.#books = kept.map(({ book }) => book);
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

/** By some of the earlier rules another key may have kept the id of the question. @param only see `RuleBook.onlyLimitFor` */
export function mayHaveMoved(
  question: Question,
  only: MatchedLimit,
  earlier: () => readonly RuleBook[],
): boolean {
  if (question.requestId === undefined) return false;
  return earlier().some((book) => book.onlyLimitFor(question)?.userId !== only.userId);
}

/**
 * The shares whose first key kept the id of a request by earlier rules, each once, without the one that keeps it now. A settlement is
 * charged in all its shares, and was charged before if all of them remember it: so each place has all of them.
 *
 * @param nowKept undefined: no rule limits it now
 */
export function earlierKeepers(
  books: readonly RuleBook[],
  { request, customer }: { readonly request: MatchedRequest; readonly customer: KnownCustomer | undefined },
  nowKept: string | undefined,
  partitionOf: (userId: string) => number,
): readonly (readonly [Share, ...Share[]])[] {
  const found = new Map<string, readonly [Share, ...Share[]]>();
  for (const book of books) {
    const matched = book.limitsFor(asOf(request, customer));
    if (matched.kind !== 'limits') continue;
    const shares = sharesOf(matched.enforced, partitionOf);
    const ordered = customer === undefined ? shares : ownFirst(shares, customer, partitionOf(customer.key));
    const [first, ...others] = ordered.map(({ partition, limits: [keeper] }): Share => ({
      partition,
      limits: [keeper],
    }));
    if (first === undefined || keyOf(first) === nowKept) continue;
    const all = [first, ...(request.settle === true ? others : NONE)] as const;
    found.set(all.map(keyOf).join('\n'), all);
  }
  return [...found.values()];
}

function keyOf({ limits: [keeper] }: Share): string {
  return keeper.userId;
}
