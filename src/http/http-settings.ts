/**
 * What an operator may choose of the HTTP door: which rate limit headers its answers carry, and in which header a gateway names the
 * user. Data, its defaults and its check; knows nothing of requests and answers.
 */
import { InvalidFieldError, objectAt } from '../api/fields.ts';

/**
 * - `x`: `X-RateLimit-Limit`, `-Remaining`, `-Reset` (epoch seconds), `-Policy` and `-Rule`
 * - `draft6`: `RateLimit-Limit`, `-Remaining`, `-Reset` (seconds from now) and `-Policy`, as draft-ietf-httpapi-ratelimit-headers-06
 *   has them
 * - `draft`: `RateLimit` and `RateLimit-Policy`, as that draft has them since its version 8
 */
export const RATE_LIMIT_HEADERS = ['x', 'draft6', 'draft'] as const;
export type RateLimitHeaders = (typeof RATE_LIMIT_HEADERS)[number];

export interface HttpSettings {
  /** Of answers that are decisions; each at most once, empty: none. */
  readonly rateLimitHeaders: readonly RateLimitHeaders[];
  /** In lower case. Absent: only the body names the user. */
  readonly userHeader?: string;
}

export const HTTP_SETTINGS_DEFAULTS: HttpSettings = { rateLimitHeaders: ['x', 'draft'] };

const HEADER_NAME_CHARACTERS_MAX = 64;
/** A token of RFC 9110. */
const HEADER_NAME = /^[\w!#$%&'*+.^`|~-]+$/;

/**
 * `{"rateLimitHeaders"?: string[], "userHeader"?: string}`. The name of a header may be in any letters.
 *
 * @throws InvalidFieldError naming the field, below `path`
 */
export function validateHttpSettings(value: unknown, path: string): HttpSettings {
  const settings = objectAt(value, path, ['rateLimitHeaders', 'userHeader'] satisfies (keyof HttpSettings)[]);
  const { rateLimitHeaders = HTTP_SETTINGS_DEFAULTS.rateLimitHeaders, userHeader } = settings;
  return {
    rateLimitHeaders: headersAt(rateLimitHeaders, `${path}.rateLimitHeaders`),
    ...(userHeader !== undefined && { userHeader: headerNameAt(userHeader, `${path}.userHeader`) }),
  };
}

function headersAt(value: unknown, path: string): readonly RateLimitHeaders[] {
  const known: readonly unknown[] = RATE_LIMIT_HEADERS;
  const isList = Array.isArray(value) && value.every((each) => known.includes(each));
  if (!isList || new Set(value).size < value.length) {
    throw new InvalidFieldError(
      path,
      `must be a list of some of ${RATE_LIMIT_HEADERS.join(', ')}, each at most once, or empty`,
    );
  }
  return value as readonly RateLimitHeaders[];
}

function headerNameAt(value: unknown, path: string): string {
  if (typeof value !== 'string' || value.length > HEADER_NAME_CHARACTERS_MAX || !HEADER_NAME.test(value)) {
    throw new InvalidFieldError(
      path,
      `must be the name of a header, of 1 to ${HEADER_NAME_CHARACTERS_MAX} letters, digits and dashes`,
    );
  }
  return value.toLowerCase();
}
