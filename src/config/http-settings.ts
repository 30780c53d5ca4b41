/**
 * The settings of the HTTP listener: rate limit headers of answers, the header that names the user, and the proxies
 * that are trusted to name the client's address. Type, defaults and validation.
 */
import { isIP } from 'node:net';
import { integerAt, InvalidFieldError, objectAt } from '../api/fields.ts';
import { RATE_LIMIT_HEADERS, type RateLimitHeaders } from '../api/rate-limit-headers.ts';

/** Settings of the HTTP listener. */
export interface HttpSettings {
  /** Rate limit headers of decisions; each at most once. Empty: none. */
  readonly rateLimitHeaders: readonly RateLimitHeaders[];
  /** Header that names the user, in lower case. Absent: only the body names the user. */
  readonly userHeader?: string;
  /** Addresses or networks (`10.0.0.0/8`) whose `X-Forwarded-For` is trusted. Absent: none. */
  readonly trustedProxies?: readonly string[];
  /**
   * How long an idle connection is kept, in milliseconds. It should be longer than the keep-alive of load balancers
   * in front. Absent: 75 000.
   */
  readonly keepAliveMillis?: number;
}

/** The settings where none are given. */
export const HTTP_SETTINGS_DEFAULTS: HttpSettings = { rateLimitHeaders: ['x', 'draft'] };

const TRUSTED_PROXIES_MAX = 64;
const KEEP_ALIVE_MILLIS_MIN = 1_000;
const KEEP_ALIVE_MILLIS_MAX = 3_600_000;
const HEADER_NAME_CHARACTERS_MAX = 64;
/** A token as in RFC 9110. */
const HEADER_NAME = /^[\w!#$%&'*+.^`|~-]+$/;

const NAMES = [
  'rateLimitHeaders',
  'userHeader',
  'trustedProxies',
  'keepAliveMillis',
] satisfies (keyof HttpSettings)[];

/**
 * Checks settings of the form `{"rateLimitHeaders"?: string[], "userHeader"?: string, "trustedProxies"?: string[],
 * "keepAliveMillis"?: number}`. The case of a header name does not matter.
 *
 * @throws InvalidFieldError naming the field, below `path`
 */
export function validateHttpSettings(value: unknown, path: string): HttpSettings {
  const settings = objectAt(value, path, NAMES);
  const { rateLimitHeaders = HTTP_SETTINGS_DEFAULTS.rateLimitHeaders, userHeader, trustedProxies } = settings;
  const { keepAliveMillis } = settings;
  return {
    rateLimitHeaders: headersAt(rateLimitHeaders, `${path}.rateLimitHeaders`),
    ...(userHeader !== undefined && { userHeader: headerNameAt(userHeader, `${path}.userHeader`) }),
    ...(trustedProxies !== undefined && {
      trustedProxies: proxiesAt(trustedProxies, `${path}.trustedProxies`),
    }),
    ...(keepAliveMillis !== undefined && {
      keepAliveMillis: integerAt(
        keepAliveMillis,
        `${path}.keepAliveMillis`,
        KEEP_ALIVE_MILLIS_MIN,
        KEEP_ALIVE_MILLIS_MAX,
      ),
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
