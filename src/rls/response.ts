/**
 * Converts the outcomes of a `ListedRequest` to a `RateLimitResponse` of Envoy's rate limit service, and formats it as
 * proto3 JSON. Pure.
 */
import { UNKNOWN_UNIT, type Unit, unitOf } from './units.ts';
import type { LimitStatus } from '../api/answer.ts';
import type { ListedAnswer, ListOutcome } from '../api/listed.ts';
import { restoredHeaders } from '../api/rate-limit-headers.ts';
import { waitHelps } from '../api/waiting.ts';

/** The `limit_remaining` of an unlimited descriptor. */
const UNLIMITED_REMAINING = 0xffff_ffff;

/** The codes of the protocol that are used here. */
export type Code = 'OK' | 'OVER_LIMIT';

/** The answer for one descriptor. */
export interface DescriptorStatus {
  readonly code: Code;
  readonly currentLimit?: { readonly requestsPerUnit: number; readonly unit: Unit; readonly name: string };
  readonly limitRemaining: number;
  /**
   * If the descriptor is over its limit: milliseconds until the same request would be granted. Otherwise: until the
   * whole limit is free. Absent: no wait helps.
   */
  readonly untilResetMillis?: number;
}

/** A header that the gateway adds to its response. */
export interface HeaderValue {
  readonly key: string;
  readonly value: string;
}

/** A response. */
export interface RateLimitResponse {
  readonly overallCode: Code;
  /** One for each descriptor, in the order of the request. */
  readonly statuses: readonly DescriptorStatus[];
  readonly responseHeadersToAdd: readonly HeaderValue[];
}

/** The response to a request. @param withHeaders add the rate limit headers of the limit with the least remaining */
export function responseTo(
  { allowed, lists }: Extract<ListedAnswer, { kind: 'listed' }>,
  withHeaders: boolean,
): RateLimitResponse {
  const statuses = lists.map(statusOf);
  return {
    overallCode: allowed ? 'OK' : 'OVER_LIMIT',
    statuses,
    responseHeadersToAdd: [...(withHeaders ? headersOf(statuses) : []), ...restoredOf(lists)],
  };
}

function statusOf(outcome: ListOutcome): DescriptorStatus {
  switch (outcome.kind) {
    case 'free':
      return { code: 'OK', limitRemaining: 0 };
    case 'unmatched':
      return { code: 'OVER_LIMIT', limitRemaining: 0 };
    case 'unlimited':
      return { code: 'OK', limitRemaining: UNLIMITED_REMAINING };
    case 'limited': {
      const { isOver, name, limitStatus, blockedMillis } = outcome;
      const code = isOver ? 'OVER_LIMIT' : 'OK';
      const block = blockedMillis === undefined ? {} : { untilResetMillis: blockedMillis };
      if (limitStatus === undefined) return { code, limitRemaining: 0, ...block };
      const { limit, windowMillis, remaining } = limitStatus;
      return {
        code,
        currentLimit: { requestsPerUnit: limit, unit: unitOf(windowMillis), name },
        // Gateways show this to their clients. If a request is denied because of its cost, the rest of the limit
        // would be misleading.
        limitRemaining: isOver ? 0 : remaining,
        ...(waitHelps(limitStatus) && { untilResetMillis: untilReset(limitStatus, isOver) }),
      };
    }
  }
}

function untilReset({ retryAfterMillis, resetMillis }: LimitStatus, isOver: boolean): number {
  return isOver ? retryAfterMillis : resetMillis;
}

/**
 * The header is also sent if rate limit headers are off, because it says that no limit is the reason of the denial.
 */
function restoredOf(lists: readonly ListOutcome[]): readonly HeaderValue[] {
  const restored = lists.map((list) =>
    list.kind === 'limited' && list.isOver ? (list.limitStatus?.restoredMillis ?? 0) : 0,
  );
  const headers = restoredHeaders(Math.max(0, ...restored));
  return Object.entries(headers).map(([key, value]) => ({ key, value }));
}

function headersOf(statuses: readonly DescriptorStatus[]): readonly HeaderValue[] {
  let nearest: DescriptorStatus | undefined;
  for (const status of statuses)
    if (status.currentLimit !== undefined && (nearest === undefined || isNearer(status, nearest)))
      nearest = status;
  if (nearest?.currentLimit === undefined) return [];
  const { untilResetMillis } = nearest;
  return [
    { key: 'RateLimit-Limit', value: String(nearest.currentLimit.requestsPerUnit) },
    { key: 'RateLimit-Remaining', value: String(nearest.limitRemaining) },
    ...(untilResetMillis === undefined
      ? []
      : [{ key: 'RateLimit-Reset', value: String(Math.ceil(untilResetMillis / 1_000)) }]),
  ];
}

function isNearer(a: DescriptorStatus, b: DescriptorStatus): boolean {
  if (a.code !== b.code) return a.code === 'OVER_LIMIT';
  return a.limitRemaining < b.limitRemaining;
}

/** The response as a proto3 JSON value: names in camel case, and zero or empty fields left out. */
export function jsonOf({ overallCode, statuses, responseHeadersToAdd }: RateLimitResponse): unknown {
  return {
    overallCode,
    ...(statuses.length > 0 && { statuses: statuses.map(statusJson) }),
    ...(responseHeadersToAdd.length > 0 && { responseHeadersToAdd }),
  };
}

function statusJson({ code, currentLimit, limitRemaining, untilResetMillis }: DescriptorStatus): unknown {
  return {
    code,
    ...(currentLimit !== undefined && { currentLimit: limitJson(currentLimit) }),
    ...(limitRemaining > 0 && { limitRemaining }),
    ...(untilResetMillis !== undefined && { durationUntilReset: durationJson(untilResetMillis) }),
  };
}

function limitJson({
  requestsPerUnit,
  unit,
  name,
}: Exclude<DescriptorStatus['currentLimit'], undefined>): unknown {
  return {
    ...(requestsPerUnit > 0 && { requestsPerUnit }),
    ...(unit !== UNKNOWN_UNIT && { unit: unit.name }),
    ...(name !== '' && { name }),
  };
}

/** A duration in seconds, with three decimal places if it is not a whole number. */
function durationJson(millis: number): string {
  return `${millis % 1_000 === 0 ? millis / 1_000 : (millis / 1_000).toFixed(3)}s`;
}
