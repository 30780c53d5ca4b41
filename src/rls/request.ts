/** A `RateLimitRequest` of Envoy's rate limit service, and its conversion to a `ListedRequest`. Pure. */
import type { Invalid } from '../api/answer.ts';
import { isBoundedInteger } from '../api/bounded.ts';
import {
  type DescriptorList,
  invalidInListed,
  LIST_COST_MAX,
  type ListedRequest,
  type ListEntry,
} from '../api/listed.ts';
import { LIMIT_MAX, WINDOW_MILLIS_MAX } from '../api/rule.ts';
import type { StatedRule } from '../api/stated-rule.ts';
import { requestUnit } from './units.ts';

/** A limit that a request states itself. */
export interface LimitOverride {
  readonly requestsPerUnit: number;
  /** The unit as a number or a name of the protocol. */
  readonly unit: number | string;
}

/** One descriptor of a request. */
export interface RequestDescriptor {
  readonly entries: readonly ListEntry[];
  readonly limit?: LimitOverride;
  /** The cost of this descriptor. Absent: the cost of the request. 0: only check whether anything is left. */
  readonly hitsAddend?: number;
  readonly isNegativeHits: boolean;
}

/** A request whose fields have the right types; their bounds are not checked yet. */
export interface RateLimitRequest {
  readonly domain: string;
  readonly descriptors: readonly RequestDescriptor[];
  /** The cost of the request; 0 means 1. */
  readonly hitsAddend: number;
}

/** Checks a request and converts it. Errors name fields as the protocol does. */
export function askedBy({ domain, descriptors, hitsAddend }: RateLimitRequest): ListedRequest | Invalid {
  const lists: DescriptorList[] = [];
  const otherwise = hitsAddend === 0 ? 1 : hitsAddend;
  for (const [i, descriptor] of descriptors.entries()) {
    const path = `descriptors[${i}]`;
    if (descriptor.isNegativeHits)
      return invalid(`${path}.is_negative_hits`, 'is not supported: hits cannot be given back');
    const limit = descriptor.limit && statedLimit(descriptor.limit, `${path}.limit`);
    if (limit !== undefined && 'kind' in limit) return limit;
    const { entries, hitsAddend: cost = otherwise } = descriptor;
    lists.push({ entries, cost: Math.min(cost, LIST_COST_MAX), ...(limit !== undefined && { limit }) });
  }
  const request = { domain, lists };
  return invalidInListed(request) ?? request;
}

function statedLimit({ requestsPerUnit, unit }: LimitOverride, path: string): StatedRule | Invalid {
  if (!isBoundedInteger(requestsPerUnit, 0, LIMIT_MAX))
    return invalid(`${path}.requests_per_unit`, `must be an integer from 0 to ${LIMIT_MAX}`);
  const windowMillis = requestUnit(unit)?.millis ?? 0;
  if (!isBoundedInteger(windowMillis, 1, WINDOW_MILLIS_MAX))
    return invalid(`${path}.unit`, 'must be SECOND, MINUTE, HOUR, DAY or MONTH');
  return { limit: requestsPerUnit, windowMillis };
}

function invalid(field: string, bound: string): Invalid {
  return { kind: 'invalid', field, message: `${field} ${bound}` };
}
