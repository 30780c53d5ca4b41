/** A fake client that gives the test's answers and records its requests. */
import type { QuorateClient } from '../../src/client/client.ts';
import type { PermitAnswer, PermitRequest } from '../../src/client/permit.ts';

export const DECIDED = { partition: 0, term: 1, index: 1, timeMillis: 1 };
const LIMIT = {
  rule: 'default',
  limit: 100,
  windowMillis: 60_000,
  remaining: 42,
  resetMillis: 59_001,
  rulesVersion: 1,
};
export const GRANT = {
  kind: 'granted',
  allowed: true,
  ...LIMIT,
  decided: DECIDED,
} as const satisfies PermitAnswer;
export const DENIAL = {
  kind: 'denied',
  allowed: false,
  ...LIMIT,
  remaining: 0,
  retryAfterMillis: 12_345,
  isCached: false,
  decided: DECIDED,
} as const satisfies PermitAnswer;

export class Answering implements Pick<QuorateClient, 'allow'> {
  readonly asked: PermitRequest[] = [];
  answer: PermitAnswer | Error = GRANT;

  async allow(request: PermitRequest): Promise<PermitAnswer> {
    this.asked.push(request);
    if (this.answer instanceof Error) throw this.answer;
    return this.answer;
  }
}
