/** Helpers that read rules for tests. */
import type { RuleDefinition } from '../../src/rules/rule-definition.ts';
import { readRules } from '../../src/rules/read-rules.ts';

/** The definitions of a valid document. */
export function rulesOf(text: string): readonly RuleDefinition[] {
  const read = readRules(text);
  if (read.kind === 'rules') return read.definitions;
  throw new Error(`mistakes: ${reported(text).join('; ')}`);
}

/** The mistakes, as `1:7 message`. */
export function reported(source: string | Uint8Array): string[] {
  const read = readRules(source);
  const mistakes = read.kind === 'mistakes' ? read.mistakes : [];
  return mistakes.map(({ line, column, message }) => `${line}:${column} ${message}`);
}

export function noted(text: string): string[] {
  return readRules(text).notes.map(({ line, column, message }) => `${line}:${column} ${message}`);
}

/** The document of requirement 002-12. */
export const TIERS = `
rate_limits:
  default:
    requests_per_second: 100
    burst: 200
  tiers:
    free: {requests_per_minute: 100, requests_per_day: 10000}
    pro: {requests_per_minute: 1000, requests_per_day: 100000}
    enterprise: {requests_per_minute: 10000, requests_per_day: unlimited}
  endpoints:
    /api/v1/charges: {requests_per_second: 25, burst: 50}
    /api/v1/customers: {requests_per_second: 100, burst: 200}
    /api/v1/reports:
      requests_per_minute: 10   # expensive
      comment: reports read everything there is
  customers:
    cust_enterprise_123: {requests_per_second: 500, burst: 1000}
`;
