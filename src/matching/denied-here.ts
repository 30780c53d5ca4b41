/** Finds denials in the partitions that this node leads itself, before anything is reserved in others. */
import type { Asking } from './open-request.ts';
import type { MatchedRequestsInit } from './matched-requests-init.ts';
import type { RuleSet } from './rule-set.ts';
import { type RefusedPart, type RequestPart } from './part-outcome.ts';
import { guardOf, ownRequestFor } from './part-request.ts';

type Init = Pick<MatchedRequestsInit, 'monotonicMillis' | 'deniedHere' | 'partitionOf'>;

/**
 * The parts of a request that this node knows to be denied, with their denials. Nothing need be reserved then, and
 * given back.
 */
export function deniedHere(
  { monotonicMillis, deniedHere: denialOf, partitionOf }: Init,
  parts: readonly RequestPart[],
  asking: Asking,
  ruleSet: RuleSet,
): readonly RefusedPart[] {
  // The request has already waited past its deadline in this process.
  if (monotonicMillis() >= asking.deadlineMillis) return [];
  // The node may know an old record of the customer. Only the partition of the customer checks that, so only its
  // denial counts.
  const sure = parts.filter(
    (part) => asking.customer === undefined || guardOf(part, asking, partitionOf) !== undefined,
  );
  return sure.flatMap((part): RefusedPart[] => {
    const decision = denialOf(ownRequestFor(part, asking, ruleSet, partitionOf));
    return decision === undefined ? [] : [{ part, answer: { kind: 'decision', decision } }];
  });
}
