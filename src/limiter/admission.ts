/**
 * Checks a request against its rule before any grant is read: can it be decided at all? This is asked before a
 * request is proposed, where a wall clock exists to compare with. A request that is in the log is always decided.
 */

import type { AllowRequest } from '../api/request.ts';
import { capacityOf, type Rule } from '../api/rule.ts';
import { DEFAULT_RULE } from './rules.ts';
import { ruleFor } from './state/customer-table.ts';
import type { LimiterState } from './state/limiter-state.ts';

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

function inadmissible(
  { cost = 1, timestampMillis, settle }: AllowRequest,
  rule: Rule,
  { maxAheadMillis, nowMillis }: TimestampBound,
): Inadmissible | undefined {
  const capacity = capacityOf(rule);
  if (capacity > 0 && cost > capacity && settle !== true) {
    const what = capacity === rule.limit ? 'the limit' : 'the bucket size';
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

/**
 * Why one of the request's limits cannot decide it, with or without grants; undefined if all can. Overrides of the
 * key's customer record are taken into account.
 */
export function inadmissibleHere(
  state: LimiterState,
  request: AllowRequest,
  bound: TimestampBound,
): Inadmissible | undefined {
  const { timestampMillis, further } = request;
  const wrong = inadmissibleUnder(state, request, bound);
  if (wrong !== undefined || further === undefined) return wrong;
  for (const limit of further) {
    const other = inadmissibleUnder(state, { ...limit, timestampMillis }, bound);
    if (other !== undefined) return other;
  }
  return undefined;
}

function inadmissibleUnder(
  state: LimiterState,
  request: AllowRequest,
  bound: TimestampBound,
): Inadmissible | undefined {
  const keys = state.keysFor(request.ruleId ?? DEFAULT_RULE);
  // The judgement reports an unknown rule.
  if (keys === undefined) return undefined;
  if (state.customers.size === 0) return inadmissible(request, keys.rule, bound);
  state.name.set(request.userId);
  return inadmissible(request, ruleFor(state.customers.find(state.name), keys.rule), bound);
}
