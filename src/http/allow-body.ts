/** The body of a request for a grant, alone or as one of a batch. */
import { type DescribedRequest, invalidInDescribed } from '../api/described.ts';
import { type AllowRequest, invalidIn, REQUEST_FIELDS, type RequestField } from '../api/request.ts';
import { fieldsOf, InvalidBodyError } from './json-body.ts';
import type { HeaderUser } from './user-header.ts';

const DESCRIPTORS = 'descriptors';
/** The descriptor that a user is, for rules. */
const USER = 'user';
const FIELDS = [...REQUEST_FIELDS, DESCRIPTORS] as const;
type Claimed = { readonly [Name in RequestField]?: never } & { readonly [DESCRIPTORS]?: unknown };

/**
 * `{"userId": string, "timestampMillis"?: integer, "cost"?: integer, "rule"?: string, "requestId"?: string}`; or with
 * `"descriptors": {name: text}` instead of `rule`: then the rules in force find the limits, and `userId`, if it is there, is the
 * descriptor `user`. A `null` counts as absent.
 *
 * @param headerUser who a header of the request names, if one does: then the body need not, and must not name another
 * @throws InvalidBodyError naming the field and its bound
 */
export function parseAllowBody(
  body: unknown,
  headerUser: HeaderUser | undefined,
): AllowRequest | DescribedRequest {
  const needs = headerUser === undefined ? 'at least userId or descriptors' : 'fields';
  // Only claimed: `invalidIn` checks every type and bound.
  const claimed = fieldsOf(body, FIELDS, needs) as Claimed;
  const { descriptors } = claimed;
  const userId = claimed.userId ?? headerUser?.userId;
  const isDescribed = descriptors !== undefined && descriptors !== null;
  const request = isDescribed ? describedOf(descriptors, userId, claimed) : requestOf(userId, claimed);
  if (headerUser !== undefined && userId !== headerUser.userId) {
    const { header, userId: named } = headerUser;
    throw new InvalidBodyError(
      'userId',
      `userId '${userId}' of the body and '${named}' of the header ${header} must be the same`,
    );
  }
  return request;
}

function requestOf(
  userId: string | undefined,
  { timestampMillis, cost, rule, requestId }: Claimed,
): AllowRequest {
  const request: AllowRequest = {
    userId: userId ?? '',
    timestampMillis: timestampMillis ?? undefined,
    cost: cost ?? undefined,
    ruleId: rule ?? undefined,
    requestId: requestId ?? undefined,
  };
  const invalid = invalidIn(request);
  if (invalid !== undefined) throw new InvalidBodyError(invalid.field, invalid.message);
  return request;
}

function describedOf(
  descriptors: unknown,
  userId: string | undefined,
  { timestampMillis, cost, rule, requestId }: Claimed,
): DescribedRequest {
  if (typeof descriptors !== 'object' || descriptors === null || Array.isArray(descriptors))
    throw new InvalidBodyError(DESCRIPTORS, 'descriptors must be an object of names and texts');
  if (rule !== undefined && rule !== null)
    throw new InvalidBodyError('rule', 'rule must be absent where descriptors find the rules');
  const named = new Map<string, string>(Object.entries(descriptors));
  const user = named.get(USER);
  if (userId !== undefined && user !== undefined && user !== userId)
    throw new InvalidBodyError('userId', 'userId and the descriptor user must be the same');
  if (userId !== undefined) named.set(USER, userId);
  const request: DescribedRequest = {
    ask: 'described',
    descriptors: named,
    timestampMillis: timestampMillis ?? undefined,
    cost: cost ?? undefined,
    requestId: requestId ?? undefined,
  };
  const invalid = invalidInDescribed(request);
  if (invalid !== undefined) throw new InvalidBodyError(invalid.field, invalid.message);
  return request;
}
