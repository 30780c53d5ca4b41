/** `RateLimitResponse` in the JSON of proto3: names in camel case, and what is zero or empty is left out. Pure. */
import type { DescriptorStatus, RateLimitResponse } from './response.ts';
import { UNKNOWN_UNIT } from './units.ts';

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

/** Without a fraction, or with three digits of it. */
function durationJson(millis: number): string {
  return `${millis % 1_000 === 0 ? millis / 1_000 : (millis / 1_000).toFixed(3)}s`;
}
