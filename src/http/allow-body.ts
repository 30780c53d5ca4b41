/** The body of a request for a grant, alone or as one of a batch. */
import { type AllowRequest, invalidIn, REQUEST_FIELDS, type RequestField } from '../api/request.ts';
import { fieldsOf, InvalidBodyError } from './json-body.ts';
import type { HeaderUser } from './user-header.ts';

/**
 * `{"userId": string, "timestampMillis"?: integer, "cost"?: integer, "rule"?: string, "requestId"?: string}`.
 * A `null` counts as absent.
 *
 * @param headerUser who a header of the request names, if one does: then the body need not, and must not name another
 * @throws InvalidBodyError naming the field and its bound
 */
export function parseAllowBody(body: unknown, headerUser: HeaderUser | undefined): AllowRequest {
  // Only claimed: `invalidIn` checks every type and bound.
  const { userId, timestampMillis, cost, rule, requestId } = fieldsOf(
    body,
    REQUEST_FIELDS,
    headerUser === undefined ? 'at least userId' : 'fields',
  ) as { readonly [Name in RequestField]?: never };
  const request: AllowRequest = {
    userId: userId ?? headerUser?.userId ?? '',
    timestampMillis: timestampMillis ?? undefined,
    cost: cost ?? undefined,
    ruleId: rule ?? undefined,
    requestId: requestId ?? undefined,
  };
  const invalid = invalidIn(request);
  if (invalid !== undefined) throw new InvalidBodyError(invalid.field, invalid.message);
  if (headerUser !== undefined && request.userId !== headerUser.userId) {
    const { header, userId: named } = headerUser;
    throw new InvalidBodyError(
      'userId',
      `userId '${request.userId}' of the body and '${named}' of the header ${header} must be the same`,
    );
  }
  return request;
}
