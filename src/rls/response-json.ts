/** Formats a `RateLimitResponse` as proto3 JSON: names in camel case, and zero or empty fields left out. Pure. */
import type { DescriptorStatus, RateLimitResponse } from './response.ts';
import { UNKNOWN_UNIT } from './units.ts';

/** The response as a JSON value. */
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
