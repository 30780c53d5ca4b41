/** The body of a request for a grant, alone or as one of a batch. */
import { type AllowRequest, invalidIn, REQUEST_FIELDS, type RequestField } from '../api/request.ts';
import { fieldsOf, InvalidBodyError } from './json-body.ts';

/**
 * `{"userId": string, "timestampMillis"?: integer, "cost"?: integer, "rule"?: string, "requestId"?: string}`.
 * A `null` counts as absent.
 *
 * @throws InvalidBodyError naming the field and its bound
 */
export function parseAllowBody(body: unknown): AllowRequest {
  // Only claimed: `invalidIn` checks every type and bound.
  const { userId, timestampMillis, cost, rule, requestId } = fieldsOf(
    body,
    REQUEST_FIELDS,
    'at least userId',
  ) as { readonly [Name in RequestField]?: never };
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
