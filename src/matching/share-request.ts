/** What a partition is asked for a request whose limits it shares. Pure. */
import type { CustomerGuard } from '../api/customer-record.ts';
import { USER } from '../api/descriptors.ts';
import type { Question } from '../api/question.ts';
import type { AllowRequest, FurtherLimit } from '../api/request.ts';
import { askedDigest } from './asked-digest.ts';
import type { Asking } from './open-request.ts';
import type { MatchedLimit } from './matched-limit.ts';
import { keyOfUser, type RuleBook } from './rule-book.ts';
import type { Share } from './share-outcome.ts';

/** @param requestId undefined: nothing is remembered of it */
export function requestFor(
  { limits }: Share,
  request: Question,
  requestId: string | undefined,
  { version }: RuleBook,
): AllowRequest {
  const [{ userId, ruleId, cost, settle: isSettled }, ...further] = limits;
  // The request is settled as a whole, or this limit is, as its rule is post-paid.
  const { timestampMillis, settle = isSettled } = request;
  const one = { userId, ruleId, cost, timestampMillis, requestId, matchedBy: version, settle };
  const isSimple = requestId === undefined && further.length === 0;
  if (isSimple) return one;
  const digest = requestId === undefined ? 1 : askedDigest(request);
  const others = further.map((limit): FurtherLimit => {
    return {
      userId: limit.userId,
      ruleId: limit.ruleId,
      cost: limit.cost,
      settle: request.settle ?? limit.settle,
    };
  });
  return { ...one, askedDigest: digest, further: others.length === 0 ? undefined : others };
}

type PlainRequest = AllowRequest & { readonly cost: number };

/** For a question that names only its user and is under one limit. @param only see `RuleBook.onlyLimitFor` */
export function plainRequestFor(
  { userId, ruleId, cost }: MatchedLimit,
  request: Question,
  matchedBy: number,
): PlainRequest {
  const { descriptors, timestampMillis, requestId } = request;
  const wanted = {
    userId: keyOfUser(userId, descriptors.get(USER) ?? ''),
    ruleId,
    cost: cost * (request.cost ?? 1),
    timestampMillis,
    requestId,
    matchedBy,
    settle: undefined,
  };
  return requestId === undefined ? wanted : { ...wanted, askedDigest: askedDigest(request) };
}

/** The share that `plainRequestFor` asked for. */
export function plainShare(only: MatchedLimit, { userId, cost }: PlainRequest, partition: number): Share {
  return { partition, limits: [{ ...only, userId, cost }] };
}

type PartitionOf = (userId: string) => number;

/** Under its own id, and bound to what is known of its customer where that lies. */
export function ownRequestFor(
  share: Share,
  asking: Asking,
  book: RuleBook,
  partitionOf: PartitionOf,
): AllowRequest {
  const { request, drawnId, attempt } = asking;
  const wanted = requestFor(share, request, request.requestId ?? drawnId, book);
  const guard = guardOf(share, asking, partitionOf);
  const isRemembered = attempt !== undefined && request.requestId !== undefined;
  if (guard === undefined && !isRemembered) return wanted;
  return { ...wanted, ...(isRemembered && { attempt }), ...(guard !== undefined && { guard }) };
}

/** Undefined where the customer of the request does not lie. */
export function guardOf(
  { partition }: Share,
  { customer }: Asking,
  partitionOf: PartitionOf,
): CustomerGuard | undefined {
  if (customer === undefined || partitionOf(customer.key) !== partition) return undefined;
  return { userId: customer.key, version: customer.version };
}
