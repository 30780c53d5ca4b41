/** What this node leads is looked at before anything is reserved elsewhere. It reserves nothing. */
import type { Asking } from './open-request.ts';
import type { MatchedRequestsInit } from './matched-requests-init.ts';
import type { RuleBook } from './rule-book.ts';
import { type RefusedShare, type Share } from './share-outcome.ts';
import { guardOf, ownRequestFor } from './share-request.ts';

type Init = Pick<MatchedRequestsInit, 'monotonicMillis' | 'deniedHere' | 'partitionOf'>;

/** What this node knows to be denied need not be reserved anywhere, and given back. */
export function deniedHere(
  { monotonicMillis, deniedHere: denialOf, partitionOf }: Init,
  shares: readonly Share[],
  asking: Asking,
  book: RuleBook,
): readonly RefusedShare[] {
  // It waited for too long before this process came to read it.
  if (monotonicMillis() >= asking.deadlineMillis) return [];
  // What it is matched with may be of before, which only the partition of its customer can say.
  const sure = shares.filter(
    (share) => asking.customer === undefined || guardOf(share, asking, partitionOf) !== undefined,
  );
  return sure.flatMap((share): RefusedShare[] => {
    const decision = denialOf(ownRequestFor(share, asking, book, partitionOf));
    return decision === undefined ? [] : [{ share, answer: { kind: 'decision', decision } }];
  });
}
