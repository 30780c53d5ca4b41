/** Which keys are limited most just now: from what was counted of them, twice, and from what a peek says of each. Pure. */
import type { TopKey } from '../api/usage.ts';

/** What was counted of the keys that were denied most, and when. */
export interface Reading {
  readonly atMillis: number;
  readonly denied: readonly TopKey[];
}

/** Readings are compared with the oldest of the last minute. */
const APART_MILLIS_MAX = 60_000;

/** What a peek at a key says of one rule. */
export type Peeked =
  | { readonly kind: 'unknown' }
  /** An operator blocked it. */
  | { readonly kind: 'blocked' }
  /** A request of cost 1 would be granted. */
  | { readonly kind: 'fits' }
  /** It would not, for so long; without an end, if the limit is 0. */
  | { readonly kind: 'waits'; readonly retryMillis: number | undefined };

export interface LimitedKey {
  readonly key: string;
  readonly rule: string;
  /** Of the hour under way and the one before. */
  readonly denied: number;
  /** Undefined while there is only one reading. */
  readonly perSecond: number | undefined;
}

/** With the newest, and without those that are too old to be compared. Oldest first. */
export function withReading(readings: readonly Reading[], newest: Reading): Reading[] {
  const kept = readings.filter(
    ({ atMillis }) => newest.atMillis - atMillis <= APART_MILLIS_MAX && atMillis < newest.atMillis,
  );
  return [...kept, newest];
}

/**
 * Those that are denied most just now first, then those that were most of all.
 *
 * @param listMax keys that a reading has at most: one that a shorter list does not name was not denied yet
 */
export function limitedKeys(readings: readonly Reading[], max: number, listMax: number): LimitedKey[] {
  const newest = readings.at(-1);
  const [oldest] = readings;
  if (newest === undefined || oldest === undefined) return [];
  const seconds = (newest.atMillis - oldest.atMillis) / 1_000;
  const before = new Map(oldest.denied.map((each) => [nameOf(each), each.count - each.error]));
  const othersMax = oldest.denied.length < listMax ? 0 : (oldest.denied.at(-1)?.count ?? 0);
  const keys = newest.denied.map(({ key, rule, count, error }): LimitedKey => {
    const denied = count - error;
    const grown = denied - (before.get(nameOf({ key, rule })) ?? othersMax);
    return { key, rule, denied, perSecond: seconds === 0 ? undefined : Math.max(0, grown) / seconds };
  });
  return keys
    .filter(({ denied }) => denied > 0)
    .sort((a, b) => (b.perSecond ?? 0) - (a.perSecond ?? 0) || b.denied - a.denied)
    .slice(0, max);
}

function nameOf({ key, rule }: Pick<TopKey, 'key' | 'rule'>): string {
  return JSON.stringify([rule, key]);
}

/** The answer of `GET /v1/keys/KEY`, as far as it is needed here. */
interface Standing {
  readonly blocked?: boolean;
  readonly limits?: readonly {
    readonly rule: string;
    readonly limit: number;
    readonly retryAfterMillis?: number;
  }[];
}

export function peekedIn(body: unknown, rule: string): Peeked {
  const { blocked, limits = [] } = (body ?? {}) as Standing;
  if (blocked === true) return { kind: 'blocked' };
  const limit = limits.find((each) => each.rule === rule);
  if (limit === undefined) return { kind: 'unknown' };
  if (limit.limit === 0) return { kind: 'waits', retryMillis: undefined };
  const { retryAfterMillis } = limit;
  return retryAfterMillis === undefined ? { kind: 'fits' } : { kind: 'waits', retryMillis: retryAfterMillis };
}
