/**
 * What an operator may choose of the HTTP door: which rate limit headers its answers carry, in which header a gateway names the
 * user, and which gateways say where a client is. Data, its defaults and its check; knows nothing of requests and answers.
 */
import { isIP } from 'node:net';
import { InvalidFieldError, objectAt } from '../api/fields.ts';
import { RATE_LIMIT_HEADERS, type RateLimitHeaders } from '../api/rate-limit-headers.ts';

export interface HttpSettings {
  /** Of answers that are decisions; each at most once, empty: none. */
  readonly rateLimitHeaders: readonly RateLimitHeaders[];
  /** In lower case. Absent: only the body names the user. */
  readonly userHeader?: string;
  /** Addresses or networks (`10.0.0.0/8`) whose `X-Forwarded-For` is believed. Absent: nobody's. */
  readonly trustedProxies?: readonly string[];
}

export const HTTP_SETTINGS_DEFAULTS: HttpSettings = { rateLimitHeaders: ['x', 'draft'] };

const TRUSTED_PROXIES_MAX = 64;
const HEADER_NAME_CHARACTERS_MAX = 64;
/** A token of RFC 9110. */
const HEADER_NAME = /^[\w!#$%&'*+.^`|~-]+$/;

/**
 * `{"rateLimitHeaders"?: string[], "userHeader"?: string, "trustedProxies"?: string[]}`. The name of a header may be in any
 * letters.
 *
 * @throws InvalidFieldError naming the field, below `path`
 */
export function validateHttpSettings(value: unknown, path: string): HttpSettings {
  const names = ['rateLimitHeaders', 'userHeader', 'trustedProxies'] satisfies (keyof HttpSettings)[];
  const settings = objectAt(value, path, names);
  const { rateLimitHeaders = HTTP_SETTINGS_DEFAULTS.rateLimitHeaders, userHeader, trustedProxies } = settings;
  return {
    rateLimitHeaders: headersAt(rateLimitHeaders, `${path}.rateLimitHeaders`),
    ...(userHeader !== undefined && { userHeader: headerNameAt(userHeader, `${path}.userHeader`) }),
    ...(trustedProxies !== undefined && {
      trustedProxies: proxiesAt(trustedProxies, `${path}.trustedProxies`),
    }),
  };
}

function proxiesAt(value: unknown, path: string): readonly string[] {
  if (!Array.isArray(value) || value.length > TRUSTED_PROXIES_MAX)
    throw new InvalidFieldError(
      path,
      `must be a list of at most ${TRUSTED_PROXIES_MAX} addresses and networks`,
    );
  return value.map((each: unknown, i) => {
    if (typeof each === 'string' && isNetwork(each)) return each;
    throw new InvalidFieldError(
      `${path}[${i}]`,
      'must be an address or a network, such as 10.0.0.7, 10.0.0.0/8 or fd00::/8',
    );
  });
}

function isNetwork(text: string): boolean {
  const [, address = '', bits] = /^([\d.]+|[\da-f:.]+)(?:\/(\d{1,3}))?$/i.exec(text) ?? [];
  const family = isIP(address);
  return family !== 0 && Number(bits ?? 0) <= (family === 4 ? 32 : 128);
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
