/**
 * What an operator may choose of the HTTP door: which rate limit headers its answers carry. Data, its defaults and its check;
 * knows nothing of requests and answers.
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
}

export const HTTP_SETTINGS_DEFAULTS: HttpSettings = { rateLimitHeaders: ['x', 'draft'] };

/**
 * `{"rateLimitHeaders"?: string[]}`.
 *
 * @throws InvalidFieldError naming the field, below `path`
 */
export function validateHttpSettings(value: unknown, path: string): HttpSettings {
  const settings = objectAt(value, path, ['rateLimitHeaders'] satisfies (keyof HttpSettings)[]);
  const { rateLimitHeaders = HTTP_SETTINGS_DEFAULTS.rateLimitHeaders } = settings;
  return {
    rateLimitHeaders: headersAt(rateLimitHeaders, `${path}.rateLimitHeaders`),
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
