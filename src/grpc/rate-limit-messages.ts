/** Decodes `RateLimitRequest` and encodes `RateLimitResponse`. Texts that become keys must be valid UTF-8. */
import type { RateLimitRequest, RequestDescriptor } from '../rls/request.ts';
import type { DescriptorStatus, RateLimitResponse } from '../rls/response.ts';
import { messageType } from './protos.ts';
import { tooManyParts } from './part-bounds.ts';

const REQUEST = messageType('envoy.service.ratelimit.v3.RateLimitRequest');
const RESPONSE = messageType('envoy.service.ratelimit.v3.RateLimitResponse');
const CODES = { OK: 1, OVER_LIMIT: 2 } as const;
/** The decoder puts this character in place of invalid UTF-8. Two different texts could then become one key. */
const REPLACEMENT = '\ufffd';
const NANOS_PER_MILLI = 1_000_000;

/** The bytes are not a valid request. */
export class MalformedRequestError extends Error {
  override readonly name = 'MalformedRequestError';
  readonly code = 'MALFORMED_REQUEST';
}

/** The result of the decoder. */
interface DecodedRequest {
  readonly domain: string;
  readonly descriptors?: readonly DecodedDescriptor[];
  readonly hits_addend: number;
}

interface DecodedDescriptor {
  readonly entries?: readonly { readonly key: string; readonly value: string }[];
  readonly limit: { readonly requests_per_unit: number; readonly unit: number } | null;
  readonly hits_addend: { readonly value: number } | null;
  readonly is_negative_hits: boolean;
}

/** Decodes a request. @throws MalformedRequestError */
export function decodeRequest(bytes: Uint8Array): RateLimitRequest {
  const { domain, descriptors = [], hits_addend } = decoded(bytes);
  checkText('domain', domain);
  return { domain, descriptors: descriptors.map(descriptorOf), hitsAddend: hits_addend };
}

function decoded(bytes: Uint8Array): DecodedRequest {
  let tooMany: string | undefined;
  try {
    tooMany = tooManyParts(bytes);
    if (tooMany === undefined) return REQUEST.decode(bytes) as unknown as DecodedRequest;
  } catch {
    throw new MalformedRequestError('the bytes are not a RateLimitRequest');
  }
  throw new MalformedRequestError(tooMany);
}

function descriptorOf(
  { entries = [], limit, hits_addend, is_negative_hits }: DecodedDescriptor,
  i: number,
): RequestDescriptor {
  for (const { key, value } of entries) {
    checkText(`descriptors[${i}].entries`, key);
    checkText(`descriptors[${i}].entries`, value);
  }
  return {
    entries,
    isNegativeHits: is_negative_hits,
    ...(limit !== null && { limit: { requestsPerUnit: limit.requests_per_unit, unit: limit.unit } }),
    ...(hits_addend !== null && { hitsAddend: hits_addend.value }),
  };
}

function checkText(field: string, text: string): void {
  if (text.includes(REPLACEMENT)) throw new MalformedRequestError(`${field} must be UTF-8`);
}

/** Encodes a response. */
export function encodeResponse({ overallCode, statuses, responseHeadersToAdd }: RateLimitResponse): Buffer {
  return RESPONSE.encode({
    overall_code: CODES[overallCode],
    statuses: statuses.map(statusOf),
    response_headers_to_add: responseHeadersToAdd,
  });
}

function statusOf({ code, currentLimit, limitRemaining, untilResetMillis }: DescriptorStatus): unknown {
  return {
    code: CODES[code],
    ...(currentLimit !== undefined && {
      current_limit: {
        requests_per_unit: currentLimit.requestsPerUnit,
        unit: currentLimit.unit.number,
        name: currentLimit.name,
      },
    }),
    limit_remaining: limitRemaining,
    ...(untilResetMillis !== undefined && { duration_until_reset: durationOf(untilResetMillis) }),
  };
}

function durationOf(millis: number): unknown {
  return { seconds: Math.floor(millis / 1_000), nanos: (millis % 1_000) * NANOS_PER_MILLI };
}
