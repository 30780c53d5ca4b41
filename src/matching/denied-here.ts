/** Finds denials in the partitions that this node leads itself, before anything is reserved in others. */
import type { Asking } from './open-request.ts';
import type { MatchedRequestsInit } from './matched-requests-init.ts';
import type { RuleBook } from './rule-book.ts';
import { type RefusedShare, type Share } from './share-outcome.ts';
import { guardOf, ownRequestFor } from './share-request.ts';

type Init = Pick<MatchedRequestsInit, 'monotonicMillis' | 'deniedHere' | 'partitionOf'>;

/**
 * The parts of a request that this node knows to be denied, with their denials. Nothing need be reserved then, and
 * given back.
 */
export function deniedHere(
  { monotonicMillis, deniedHere: denialOf, partitionOf }: Init,
  shares: readonly Share[],
  asking: Asking,
  book: RuleBook,
): readonly RefusedShare[] {
  // The request has already waited past its deadline in this process.
  if (monotonicMillis() >= asking.deadlineMillis) return [];
  // The node may know an old record of the customer. Only the partition of the customer checks that, so only its
  // denial counts.
  const sure = shares.filter(
    (share) => asking.customer === undefined || guardOf(share, asking, partitionOf) !== undefined,
  );
  return sure.flatMap((share): RefusedShare[] => {
    const decision = denialOf(ownRequestFor(share, asking, book, partitionOf));
    return decision === undefined ? [] : [{ share, answer: { kind: 'decision', decision } }];
  });
}
