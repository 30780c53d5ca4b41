/** The body of `POST /v1/allow`, checked. It parses and refuses; it decides nothing. */
import { type AllowRequest, checkRequest, InvalidRequestError } from '../limiter/request.ts';

/** A body that cannot be asked about. `field` is the name in the body, or `body`. */
export class InvalidBodyError extends Error {
  readonly code = 'INVALID_BODY';
  readonly field: string;

  constructor(field: string, message: string) {
    super(message);
    this.name = 'InvalidBodyError';
    this.field = field;
  }
}

const FIELDS = ['userId', 'timestampMillis', 'cost', 'rule', 'requestId'] as const;
const KNOWN: ReadonlySet<string> = new Set(FIELDS);

/**
 * `{"userId": string, "timestampMillis"?: integer, "cost"?: integer, "rule"?: string, "requestId"?: string}`.
 * A `null` counts as absent. Unknown fields are refused: a misspelt `cost` must not silently become 1.
 *
 * @throws InvalidBodyError naming the field and its bound
 */
export function parseAllowBody(body: unknown): AllowRequest {
  if (typeof body !== 'object' || body === null || Array.isArray(body)) {
    throw new InvalidBodyError('body', 'body must be a JSON object with at least userId');
  }
  // Only claimed: `checkRequest` below checks every type and bound.
  const fields = body as { readonly [Name in (typeof FIELDS)[number]]?: never };
  for (const name of Object.keys(fields)) {
    if (KNOWN.has(name)) continue;
    const shown = name.slice(0, 64);
    throw new InvalidBodyError(shown, `${shown} is not a field; the fields are ${FIELDS.join(', ')}`);
  }
  const request: AllowRequest = {
    userId: fields.userId ?? '',
    timestampMillis: fields.timestampMillis ?? undefined,
    cost: fields.cost ?? undefined,
    ruleId: fields.rule ?? undefined,
    requestId: fields.requestId ?? undefined,
  };
  try {
    checkRequest(request);
  } catch (error) {
    if (!(error instanceof InvalidRequestError)) throw error;
    const field = error.field === 'ruleId' ? 'rule' : error.field;
    throw new InvalidBodyError(field, error.message.replace(/^ruleId/, 'rule'));
  }
  return request;
}
