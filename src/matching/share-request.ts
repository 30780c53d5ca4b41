/** What a partition is asked for a request whose limits it shares. Pure. */
import type { DescribedRequest } from '../api/described.ts';
import type { AllowRequest } from '../api/request.ts';
import { askedDigest } from './asked-digest.ts';
import type { RuleBook } from './rule-book.ts';
import type { Share } from './share-outcome.ts';

/** @param requestId undefined: nothing is remembered of it */
export function requestFor(
  { limits }: Share,
  request: DescribedRequest,
  requestId: string | undefined,
  { version }: RuleBook,
): AllowRequest {
  const [{ userId, ruleId, cost }, ...further] = limits;
  const { timestampMillis } = request;
  const one = { userId, ruleId, cost, timestampMillis, requestId, matchedBy: version };
  const isSimple = requestId === undefined && further.length === 0;
  if (isSimple) return one;
  const digest = requestId === undefined ? 1 : askedDigest(request);
  const others = further.map((limit) => ({ userId: limit.userId, ruleId: limit.ruleId, cost: limit.cost }));
  return { ...one, askedDigest: digest, further: others.length === 0 ? undefined : others };
}
