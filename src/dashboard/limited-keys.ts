/** Finds the keys that are denied most right now by comparing two readings of the usage figures. Pure. */
import type { TopKey } from '../api/usage.ts';

/** Denial counts of the keys with the most denials, at one moment. */
export interface Reading {
  readonly atMillis: number;
  readonly denied: readonly TopKey[];
}

/** The newest reading is compared with the oldest one that is at most this old. */
const APART_MILLIS_MAX = 60_000;

/** The answer of a peek about one rule of a key. */
export type Peeked =
  | { readonly kind: 'unknown' }
  /** An operator blocked the key. */
  | { readonly kind: 'blocked' }
  /** A request of cost 1 would be granted. */
  | { readonly kind: 'fits' }
  /** It would be denied for `retryMillis`; undefined: for ever, because the limit is 0. */
  | { readonly kind: 'waits'; readonly retryMillis: number | undefined };

/** A key and the rule that denies it. */
export interface LimitedKey {
  readonly key: string;
  readonly rule: string;
  /** Denials in the current hour and the one before. */
  readonly denied: number;
  /** Undefined while there is only one reading. */
  readonly perSecond: number | undefined;
}

/** Adds the newest reading and drops those that are too old to compare. Oldest first. */
export function withReading(readings: readonly Reading[], newest: Reading): Reading[] {
  const kept = readings.filter(
    ({ atMillis }) => newest.atMillis - atMillis <= APART_MILLIS_MAX && atMillis < newest.atMillis,
  );
  return [...kept, newest];
}

/**
 * The keys with the highest denial rate first; ties go to the key with more denials.
 *
 * @param listMax most keys a reading can hold. A key missing from a shorter list had no denials yet.
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

/** The fields of `GET /v1/keys/{key}` that are needed here. */
interface KeyStatus {
  readonly blocked?: boolean;
  readonly limits?: readonly {
    readonly rule: string;
    readonly limit: number;
    readonly retryAfterMillis?: number;
  }[];
}

/** Reads the answer to a peek for one rule. */
export function peekedIn(body: unknown, rule: string): Peeked {
  const { blocked, limits = [] } = (body ?? {}) as KeyStatus;
  if (blocked === true) return { kind: 'blocked' };
  const limit = limits.find((each) => each.rule === rule);
  if (limit === undefined) return { kind: 'unknown' };
  if (limit.limit === 0) return { kind: 'waits', retryMillis: undefined };
  const { retryAfterMillis } = limit;
  return retryAfterMillis === undefined ? { kind: 'fits' } : { kind: 'waits', retryMillis: retryAfterMillis };
}
