/** Helpers for matching tests: partitions with scripted answers behind `MatchedRequests`. */
import { expect } from 'vitest';
import type { AllowAnswer, Decision, LimitStatus, Unavailable } from '../../src/api/answer.ts';
import type { CustomerAnswer } from '../../src/api/customer.ts';
import type { AskAnswer, Question } from '../../src/api/question.ts';
import type { PeekAnswer, PeekRequest } from '../../src/api/peek.ts';
import type { RefundAnswer } from '../../src/api/refund.ts';
import type { AllowRequest } from '../../src/api/request.ts';
import type { LoggedRequest } from '../../src/api/user-request.ts';
import { DegradedDecisions } from '../../src/matching/degraded-decisions.ts';
import { MatchedRequests } from '../../src/matching/matched-requests.ts';
import { ANY_RULE } from '../../src/api/stated-rule.ts';
import { RuleSet } from '../../src/matching/rule-set.ts';
import { readRules } from '../../src/rules/read-rules.ts';

const DOCUMENT = `
rules:
  - { id: user, key: user, windows: [{ limit: 2, per: minute }, { limit: 5, per: hour }] }
  - { id: net, key: ip, windows: { limit: 10, per: minute }, cost: { /dear: 3 } }
  - { id: all, windows: { limit: 100, per: minute } }
  - { id: shadowed, key: ip, group: shadowed, windows: { limit: 1, per: minute }, shadow: true }
  - { id: boss, match: { user: boss }, key: user, unlimited: true }
`;

interface Asked {
  readonly request: LoggedRequest;
  readonly deadlineMillis: number;
  readonly answer: (answer: AllowAnswer | RefundAnswer | CustomerAnswer) => void;
}

export function ruleSetOf(version: number, document = DOCUMENT): RuleSet {
  const read = readRules(document);
  if (read.kind !== 'rules') throw new Error(JSON.stringify(read));
  return new RuleSet(version, read.definitions);
}

export function statusBy(rulesVersion: number): PeekAnswer {
  const decided = { term: 1, index: 5, timeMillis: 8 };
  return { kind: 'keyStatus', keyStatus: { limits: [], decided, rulesVersion } };
}

/** The status of a limit. @param more further numbers, or further fields of the answer */
export function limitStatus(
  ruleId: string,
  more: Partial<LimitStatus> = {},
): Extract<PeekAnswer, { kind: 'keyStatus' }> {
  const numbers = { limit: 10, windowMillis: 60_000, remaining: 0, retryAfterMillis: 0, resetMillis: 9 };
  const decided = { term: 3, index: 6, timeMillis: 9 };
  const keyStatus = { limits: [{ ruleId, ...numbers, ...more }], decided, rulesVersion: 7 };
  return { kind: 'keyStatus', keyStatus };
}

/** The partition of a key: one for each descriptor. */
const PARTITION_OF: Readonly<Record<string, number>> = { user: 1, ip: 2, '*': 3, customer: 4 };

export class Bench {
  /** Rules that were in force recently, newest first. */
  earlier: readonly RuleSet[] = [];
  readonly asked: Asked[] = [];
  readonly reported: { readonly answer: AskAnswer; readonly partition: number }[] = [];
  ruleSet: RuleSet | 'starting' = ruleSetOf(7);
  now = 1_000;
  /** The answer of each partition's leader about its rules. */
  inForce: PeekAnswer = statusBy(7);
  /** The partitions that were asked for it. */
  readonly confirmations: PeekRequest[] = [];
  /** By rule: the answer to a peek after another limit has denied; absent: unavailable. */
  readonly keyStatuses = new Map<string, PeekAnswer>();
  readonly peekedAt: { readonly request: PeekRequest; readonly deadlineMillis: number }[] = [];
  /** If present, peeks wait here instead of being answered at once. */
  held: (() => void)[] | undefined;
  /** An answer that every request gets at once. */
  refuses: Unavailable | undefined;
  /** By the beginning of a key: the quick denials of partitions that this node leads. */
  readonly denied = new Map<string, Decision>();
  /** The decisions of shadow rules on requests that were let through. */
  readonly tried: { readonly ruleId: string; readonly wouldAllow: boolean }[] = [];
  readonly requests = new MatchedRequests({
    earlier: () => this.earlier,
    ruleSet: () => this.ruleSet,
    partitionOf: (userId) => PARTITION_OF[userId.split('=')[0] ?? ''] ?? 0,
    ask: (request, done, deadlineMillis) => {
      if (request.ask === 'peek' && request.ruleId === ANY_RULE) {
        this.confirmations.push(request);
        done(this.inForce as never, 0);
      } else if (request.ask === 'peek') {
        this.peekedAt.push({ request, deadlineMillis });
        const answer = (): void => done((this.keyStatuses.get(request.ruleId ?? '') ?? GONE) as never, 0);
        if (this.held === undefined) answer();
        else this.held.push(answer);
      } else if (this.refuses !== undefined) done(this.refuses, 0);
      else this.asked.push({ request, deadlineMillis, answer: (answer) => done(answer as never, 0) });
    },
    deniedHere: ({ userId }) => this.denied.get(userId.split('=')[0] ?? ''),
    tried: (ruleId, wouldAllow) => this.tried.push({ ruleId, wouldAllow }),
    newAttempt: () => this.asked.length + 1,
    monotonicMillis: () => this.now,
    listenerMillis: () => this.now,
    deadlineMillis: 500,
    waitingMax: 2,
    degraded: new DegradedDecisions({
      takeLocal: () => expect.fail('no rule is local'),
      monotonicMillis: () => this.now,
      changed: () => expect.fail('all rules are closed'),
    }),
  });

  ask(descriptors: Readonly<Record<string, string>>, more: Partial<Question> = {}): void {
    const request = { descriptors: new Map(Object.entries(descriptors)), ...more } as const;
    this.requests.ask(request, (answer, partition) => this.reported.push({ answer, partition }));
  }

  /** The open request of an enforced rule for a key with this beginning. */
  of(key: string): Asked & { readonly request: AllowRequest } {
    const found = this.asked.findLast(({ request }) => {
      const isShadowed = 'ruleId' in request && request.ruleId === 'shadowed/minute';
      return !isShadowed && request.userId.startsWith(key);
    });
    return (found ?? expect.fail(`nobody asked for ${key}`)) as Asked & { readonly request: AllowRequest };
  }

  /** The request of the shadow rule, which counts by address as `net` does. */
  get shadow(): Asked {
    const found = this.asked.find(
      ({ request }) => 'ruleId' in request && request.ruleId === 'shadowed/minute',
    );
    return found ?? expect.fail('nobody asked the rule in shadow');
  }

  /** Removes the requests so far, so that `of` finds those of the next one. */
  refunds(): unknown[] {
    return this.asked.filter(({ request }) => request.ask === 'refund').map(({ request }) => request);
  }
}

export function decision(more: Partial<Decision> = {}): AllowAnswer {
  const limit = {
    ruleId: 'net/minute',
    limit: 10,
    windowMillis: 60_000,
    remaining: 4,
    retryAfterMillis: 0,
    resetMillis: 9,
  };
  return {
    kind: 'decision',
    decision: {
      allowed: true,
      ...limit,
      decided: { term: 1, index: 5, timeMillis: 8 },
      rulesVersion: 7,
      ...more,
    },
  };
}

export const DENIED = decision({ allowed: false, remaining: 0, retryAfterMillis: 300 });
export const GONE: Unavailable = { kind: 'unavailable', reason: 'no_leader', proposed: false };
export const LOST: Unavailable = { kind: 'unavailable', reason: 'unknown_outcome', proposed: true };
export const FROM = { user: 'ada', ip: '10.0.0.1' };
