/**
 * Helpers for fail mode tests: rules with one fail mode each, each in its own partition, and a node with local
 * fractions.
 */
import { expect } from 'vitest';
import type { AllowAnswer, Decision, Unavailable } from '../../src/api/answer.ts';
import type { AskAnswer, Question } from '../../src/api/question.ts';
import type { RefundAnswer } from '../../src/api/refund.ts';
import type { UnavailableReason } from '../../src/api/refusals.ts';
import type { LoggedRequest } from '../../src/api/user-request.ts';
import { DegradedDecisions } from '../../src/matching/degraded-decisions.ts';
import { MatchedRequests } from '../../src/matching/matched-requests.ts';
import { RuleSet } from '../../src/matching/rule-set.ts';
import type { FailMode } from '../../src/rules/rule-definition.ts';
import { readRules } from '../../src/rules/read-rules.ts';

export const WAIT = 4_321;

interface Asked {
  readonly request: LoggedRequest;
  readonly deadlineMillis: number;
  readonly answer: (answer: AllowAnswer | RefundAnswer) => void;
}

export function ruleSetOf(rules: readonly string[]): RuleSet {
  const read = readRules(
    `rules:\n${rules.map((rule) => `  - { ${rule}, windows: { limit: 9, per: hour } }\n`).join('')}`,
  );
  if (read.kind !== 'rules') throw new Error(JSON.stringify(read));
  return new RuleSet(7, read.definitions);
}

/** Each rule counts by a descriptor of its own name, in a partition of its own. */
export class Bench {
  readonly asked: Asked[] = [];
  readonly reported: { readonly answer: AskAnswer; readonly partition: number }[] = [];
  /** The costs that were taken from this node's local fractions and not given back. */
  readonly taken: string[][] = [];
  readonly changes: (readonly [boolean, number])[] = [];
  /** By rule: the wait of its local fraction. */
  readonly waits = new Map<string, number>();
  now = 1_000;
  ruleSet: RuleSet | 'starting';
  readonly #names: readonly string[];
  readonly requests: MatchedRequests;

  constructor(modes: Readonly<Record<string, FailMode>>) {
    this.#names = Object.keys(modes);
    this.ruleSet = ruleSetOf(this.#names.map((id) => `id: ${id}, key: ${id}, failMode: ${modes[id]}`));
    const monotonicMillis = (): number => this.now;
    this.requests = new MatchedRequests({
      earlier: () => [],
      ruleSet: () => this.ruleSet,
      partitionOf: (userId) => this.#names.indexOf(userId.split('=')[0] ?? ''),
      ask: (request, done, deadlineMillis) => {
        // After a denial the other limits are peeked at; here no answer depends on that.
        if (request.ask === 'peek') return done(GONE, 0);
        const partition = this.#names.indexOf(request.userId.split('=')[0] ?? '');
        this.asked.push({ request, deadlineMillis, answer: (answer) => done(answer as never, partition) });
      },
      deniedHere: () => undefined,
      tried: () => undefined,
      newAttempt: () => this.asked.length + 1,
      monotonicMillis,
      listenerMillis: monotonicMillis,
      deadlineMillis: 500,
      waitingMax: 2,
      degraded: new DegradedDecisions({
        takeLocal: (limits) => {
          const wait = Math.max(...limits.map(({ rule }) => this.waits.get(rule.id) ?? 0));
          const taken = limits.map(({ rule }) => rule.id);
          if (wait === 0) this.taken.push(taken);
          const giveBack = (): void => void this.taken.splice(this.taken.indexOf(taken), 1);
          return { waitMillis: wait, giveBack };
        },
        monotonicMillis,
        changed: (isDegraded, decisions) => this.changes.push([isDegraded, decisions]),
      }),
    });
  }

  ask(more: Partial<Question> = {}): void {
    const descriptors = new Map(this.#names.map((name) => [name, 'ada']));
    this.requests.ask({ descriptors, ...more }, (answer, partition) =>
      this.reported.push({ answer, partition }),
    );
  }

  /** Answers the last request for a rule. */
  answer(rule: string, answer: AllowAnswer): void {
    const found = this.asked.findLast(
      ({ request }) => request.ask === undefined && request.userId.startsWith(rule),
    );
    (found ?? expect.fail(`nobody asked for ${rule}`)).answer(answer);
  }

  wasAsked(rule: string): boolean {
    return this.asked.some(({ request }) => request.ask === undefined && request.userId.startsWith(rule));
  }

  /** The rules whose reservations were given back. */
  get refunded(): string[] {
    return this.asked.flatMap(({ request }) =>
      request.ask === 'refund' ? [request.userId.split('=')[0] ?? ''] : [],
    );
  }
}

export function decision(allowed: boolean, more: Partial<Decision> = {}): AllowAnswer {
  const keyStatus = { limit: 9, windowMillis: 3_600_000, remaining: 4, resetMillis: 9 };
  const decided = { term: 1, index: 5, timeMillis: 8 };
  const retryAfterMillis = allowed ? 0 : 300;
  return {
    kind: 'decision',
    decision: {
      allowed,
      ruleId: 'a/hour',
      ...keyStatus,
      retryAfterMillis,
      decided,
      rulesVersion: 7,
      ...more,
    },
  };
}

export function undecided(reason: UnavailableReason = 'no_leader', proposed = false): Unavailable {
  return { kind: 'unavailable', reason, proposed };
}

export const GRANTED = decision(true);
export const DENIED = decision(false);
export const GONE = undecided();
export const LOST = undecided('unknown_outcome', true);

export function degraded(allowed: boolean, ...rules: string[]): object {
  const ruleIds = rules.map((id) => `${id}/hour`);
  return { kind: 'degraded', allowed, ruleIds, rulesVersion: 7, retryAfterMillis: allowed ? 0 : WAIT };
}
