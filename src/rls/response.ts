/** What lists of descriptors were told, as `RateLimitResponse` of Envoy's rate limit service. Pure. */
import type { LimitStanding } from '../api/answer.ts';
import type { ListedAnswer, ListOutcome } from '../api/listed.ts';
import { restoredHeaders } from '../api/restored.ts';
import { waitHelps } from '../api/waiting.ts';
import { type Unit, unitOf } from './units.ts';

/** What `limit_remaining` is where nothing limits. */
const UNLIMITED_REMAINING = 0xffff_ffff;

export type Code = 'OK' | 'OVER_LIMIT';

export interface DescriptorStatus {
  readonly code: Code;
  readonly currentLimit?: { readonly requestsPerUnit: number; readonly unit: Unit; readonly name: string };
  readonly limitRemaining: number;
  /** Until the same would be granted, where it is over its limit; else until all of the limit is there again. Absent: no wait helps. */
  readonly untilResetMillis?: number;
}

export interface HeaderValue {
  readonly key: string;
  readonly value: string;
}

export interface RateLimitResponse {
  readonly overallCode: Code;
  /** One for each descriptor, in their order. */
  readonly statuses: readonly DescriptorStatus[];
  readonly responseHeadersToAdd: readonly HeaderValue[];
}

/** @param withHeaders tell the client of the gateway how it stands under the limit that it is nearest to */
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
      const { isOver, name, standing, blockedMillis } = outcome;
      const code = isOver ? 'OVER_LIMIT' : 'OK';
      const block = blockedMillis === undefined ? {} : { untilResetMillis: blockedMillis };
      if (standing === undefined) return { code, limitRemaining: 0, ...block };
      const { limit, windowMillis, remaining } = standing;
      return {
        code,
        currentLimit: { requestsPerUnit: limit, unit: unitOf(windowMillis), name },
        // Gateways tell it to clients: beside a denial for a cost that does not fit, it would promise something.
        limitRemaining: isOver ? 0 : remaining,
        ...(waitHelps(standing) && { untilResetMillis: untilReset(standing, isOver) }),
      };
    }
  }
}

function untilReset({ retryAfterMillis, resetMillis }: LimitStanding, isOver: boolean): number {
  return isOver ? retryAfterMillis : resetMillis;
}

/** Also where gateways are told no standings: it says that no limit is the reason. */
function restoredOf(lists: readonly ListOutcome[]): readonly HeaderValue[] {
  const restored = lists.map((list) =>
    list.kind === 'limited' && list.isOver ? (list.standing?.restoredMillis ?? 0) : 0,
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
