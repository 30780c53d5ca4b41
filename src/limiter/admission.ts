/**
 * Checks a request against its rule before any grant is looked at: can it be decided at all? Only listeners ask this,
 * because only they have a wall clock to compare with. A request that is in the log is always decided.
 */

import type { AllowRequest } from '../api/request.ts';
import { capacityOf, type Rule } from '../api/rule.ts';

/** Which field of a request is wrong, and what is allowed there. */
export interface Inadmissible {
  readonly field: 'cost' | 'timestampMillis';
  readonly message: string;
}

/** How far into the future a caller's timestamp may reach. */
export interface TimestampBound {
  readonly maxAheadMillis: number;
  /** The wall clock. It is read only if the request has a timestamp. */
  readonly nowMillis: () => number;
}

/** Why `rule` cannot decide the request, with or without earlier grants; undefined if it can. */
export function inadmissible(
  { cost = 1, timestampMillis, settle }: AllowRequest,
  rule: Rule,
  { maxAheadMillis, nowMillis }: TimestampBound,
): Inadmissible | undefined {
  const capacity = capacityOf(rule);
  if (capacity > 0 && cost > capacity && settle !== true) {
    const what = capacity === rule.limit ? 'the limit' : 'what fits into the bucket';
    const message = `cost must be at most ${what} of rule '${rule.id}', which is ${capacity}`;
    return { field: 'cost', message };
  }
  if (timestampMillis === undefined) return undefined;
  if (rule.clock === 'cluster') {
    const message = `rule '${rule.id}' uses the cluster's clock and takes no timestampMillis`;
    return { field: 'timestampMillis', message };
  }
  if (timestampMillis <= nowMillis() + maxAheadMillis) return undefined;
  const message = `timestampMillis must be at most ${maxAheadMillis} ms ahead of now`;
  return { field: 'timestampMillis', message };
}
