/** Applies the check of `admission.ts` with the rules and customer records of a state. Changes nothing. */

import type { AllowRequest } from '../api/request.ts';
import { type Inadmissible, inadmissible, type TimestampBound } from './admission.ts';
import { DEFAULT_RULE } from './rules.ts';
import { ruleFor } from './state/customer-table.ts';
import type { LimiterState } from './state/limiter-state.ts';

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
