/** What the rules that are applied in a state say of a request before any grant is looked at: see `admission.ts`. It changes nothing. */

import type { AllowRequest } from '../api/request.ts';
import { type Inadmissible, inadmissible, type TimestampBound } from './admission.ts';
import { DEFAULT_RULE } from './rules.ts';
import { ruleFor } from './state/customer-table.ts';
import type { LimiterState } from './state/limiter-state.ts';

/** Why the request cannot be decided by a rule of its limits, as that is for their keys, whatever was granted. */
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
  // What there is no rule for is found out by the judgement.
  if (keys === undefined) return undefined;
  if (state.customers.size === 0) return inadmissible(request, keys.rule, bound);
  state.name.set(request.userId);
  return inadmissible(request, ruleFor(state.customers.find(state.name), keys.rule), bound);
}
