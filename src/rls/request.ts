/** What a gateway asks by `RateLimitRequest` of Envoy's rate limit service, as a request for lists of descriptors. Pure. */
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

export interface LimitOverride {
  readonly requestsPerUnit: number;
  /** A number or a name of the protocol. */
  readonly unit: number | string;
}

export interface RequestDescriptor {
  readonly entries: readonly ListEntry[];
  readonly limit?: LimitOverride;
  /** Absent: as the request says. 0: it is only looked whether anything is left. */
  readonly hitsAddend?: number;
  readonly isNegativeHits: boolean;
}

/** Of the right types, and nothing else is known of it. */
export interface RateLimitRequest {
  readonly domain: string;
  readonly descriptors: readonly RequestDescriptor[];
  /** 0: 1. */
  readonly hitsAddend: number;
}

/** Fields are called as the protocol does. */
export function askedBy({ domain, descriptors, hitsAddend }: RateLimitRequest): ListedRequest | Invalid {
  const lists: DescriptorList[] = [];
  const otherwise = hitsAddend === 0 ? 1 : hitsAddend;
  for (const [i, descriptor] of descriptors.entries()) {
    const path = `descriptors[${i}]`;
    if (descriptor.isNegativeHits)
      return invalid(`${path}.is_negative_hits`, 'is not served: hits are not given back here');
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
