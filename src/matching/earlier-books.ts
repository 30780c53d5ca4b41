/**
 * How requests were matched by rules that were in force until lately. The id of a request is kept by one of its keys (share-outcome.ts),
 * so other rules may lead a retry to another key: then the former one is asked first. This file says who that is, and asks nobody.
 */
import type { RuleDefinition } from '../rules/rule-definition.ts';
import { asOf } from './customer-cache.ts';
import { ownFirst } from './record-read.ts';
import { NONE } from './open-request.ts';
import type { MatchedRequest } from './open-request.ts';
import type { KnownCustomer } from './customer-cache.ts';
import { RuleBook } from './rule-book.ts';
import { type Share, sharesOf } from './share-outcome.ts';

/** What group 0 says of rules that it has replaced. */
export interface MatchedBefore {
  /** In JSON, see `matchingForm`. */
  readonly definitions: string;
  /** So long after a grant its id was remembered. */
  readonly horizonMillis: number;
}

export class EarlierBooks {
  readonly #monotonicMillis: () => number;
  #known: readonly MatchedBefore[] = NONE;
  #books: readonly { readonly book: RuleBook; readonly untilMillis: number }[] = NONE;

  constructor(monotonicMillis: () => number) {
    this.#monotonicMillis = monotonicMillis;
  }

  /** Those by which a grant may have been found whose id is still remembered, newest first. */
  of(known: readonly MatchedBefore[] = NONE): readonly RuleBook[] {
    if (known.length === 0) return NONE;
    const now = this.#monotonicMillis();
    if (known !== this.#known) {
      this.#known = known;
      // When they were replaced is not known to a node that has just started: it was not later than now.
      this.#books = known.map(({ definitions, horizonMillis }) => ({
        book: new RuleBook(0, JSON.parse(definitions) as readonly RuleDefinition[]),
        untilMillis: now + horizonMillis,
      }));
    }
    if (this.#books.length === 0) return NONE;
    if (this.#books.some(({ untilMillis }) => untilMillis <= now))
      this.#books = this.#books.filter(({ untilMillis }) => untilMillis > now);
    return this.#books.map(({ book }) => book);
  }
}

/**
 * The shares that kept the id of a request by earlier rules, each once, but for the key that keeps it now.
 *
 * @param nowKept undefined: no rule limits it now
 */
export function earlierKeepers(
  books: readonly RuleBook[],
  { request, customer }: { readonly request: MatchedRequest; readonly customer: KnownCustomer | undefined },
  nowKept: string | undefined,
  partitionOf: (userId: string) => number,
): readonly Share[] {
  const found = new Map<string, Share>();
  for (const book of books) {
    const matched = book.limitsFor(asOf(request, customer));
    if (matched.kind !== 'limits') continue;
    const shares = sharesOf(matched.enforced, partitionOf);
    const ordered = customer === undefined ? shares : ownFirst(shares, customer, partitionOf(customer.key));
    const [first] = ordered;
    if (first !== undefined && first.limits[0].userId !== nowKept)
      found.set(first.limits[0].userId, { partition: first.partition, limits: [first.limits[0]] });
  }
  return [...found.values()];
}
