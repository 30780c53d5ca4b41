/**
 * Makes the request that is sent to the partition of one part, with a digest of what the caller asked. Pure
 * functions.
 */
import type { CustomerGuard } from '../api/customer-record.ts';
import { USER } from '../api/descriptors.ts';
import type { Question } from '../api/question.ts';
import type { AllowRequest, FurtherLimit } from '../api/request.ts';
import type { Asking } from './open-request.ts';
import type { MatchedLimit } from './matched-limit.ts';
import { keyOfUser, type RuleSet } from './rule-set.ts';
import type { RequestPart } from './part-outcome.ts';

/** The request for one part. @param requestId undefined: the partition remembers nothing about it */
export function requestFor(
  { limits }: RequestPart,
  request: Question,
  requestId: string | undefined,
  { version }: RuleSet,
): AllowRequest {
  const [{ userId, ruleId, cost, settle: isSettled }, ...further] = limits;
  // Either the whole request is a settlement, or the rule of this limit is post-paid.
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

/** The request for a question that names only its user and has one limit. @param only see `RuleSet.onlyLimitFor` */
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

/** The part that `plainRequestFor` asked for. */
export function plainPart(
  only: MatchedLimit,
  { userId, cost }: PlainRequest,
  partition: number,
): RequestPart {
  return { partition, limits: [{ ...only, userId, cost }] };
}

type PartitionOf = (userId: string) => number;

/**
 * The request for the first part, under the request's own id. In the customer's partition it also names the record
 * version that the request was matched with.
 */
export function ownRequestFor(
  part: RequestPart,
  asking: Asking,
  ruleSet: RuleSet,
  partitionOf: PartitionOf,
): AllowRequest {
  const { request, drawnId, attempt } = asking;
  const wanted = requestFor(part, request, request.requestId ?? drawnId, ruleSet);
  const guard = guardOf(part, asking, partitionOf);
  const isRemembered = attempt !== undefined && request.requestId !== undefined;
  if (guard === undefined && !isRemembered) return wanted;
  return { ...wanted, ...(isRemembered && { attempt }), ...(guard !== undefined && { guard }) };
}

/** The record version that the partition has to check; undefined if the record is not in this partition. */
export function guardOf(
  { partition }: RequestPart,
  { customer }: Asking,
  partitionOf: PartitionOf,
): CustomerGuard | undefined {
  if (customer === undefined || partitionOf(customer.key) !== partition) return undefined;
  return { userId: customer.key, version: customer.version };
}

/**
 * FNV-1a over UTF-16 code units, with two different start values. It only has to catch mistakes of callers; nobody
 * gains anything by constructing a collision.
 */
const PRIME = 0x0100_0193;
const LOW_BEGIN = 0x811c_9dc5;
const HIGH_BEGIN = 0x2f0b_7a35;
const HIGH_BITS = 0xffff;

/**
 * The digest of a question: an integer from 1 to `ASKED_DIGEST_MAX`. A partition stores it with the request id, and
 * so recognises a retry even if the rules have changed since. Equal questions have equal digests on every node, in
 * any order of their descriptors. Empty descriptors count as absent.
 */
export function askedDigest({ descriptors, rule, cost = 1, timestampMillis, settle }: Question): number {
  const said = [...descriptors].filter(([, value]) => value !== '');
  if (said.length > 1) said.sort(([a], [b]) => (a < b ? -1 : 1));
  // JSON quotes its strings, so two different questions never give the same text.
  const asked = [said, rule ?? null, cost, timestampMillis ?? null];
  const text = JSON.stringify(settle === true ? [...asked, 'settle'] : asked);
  let low = LOW_BEGIN;
  let high = HIGH_BEGIN;
  for (let i = 0; i < text.length; i += 1) {
    const unit = text.charCodeAt(i);
    low = Math.imul(low ^ unit, PRIME);
    high = Math.imul(high ^ (unit + i), PRIME);
  }
  // The lowest bits of the product depend only on the lowest bits of the text, so mix in higher ones.
  high ^= high >>> 16;
  return (high & HIGH_BITS) * 2 ** 32 + (low >>> 0) || 1;
}
