/** Helper: a node that matches requests, in front of partitions whose leaders commit at once. */
import { expect } from 'vitest';
import type { AskAnswer, Question } from '../../src/api/question.ts';
import type { RefundQuestionAnswer } from '../../src/api/refund.ts';
import { DegradedDecisions } from '../../src/matching/degraded-decisions.ts';
import { MatchedRequests } from '../../src/matching/matched-requests.ts';
import type { RuleSet } from '../../src/matching/rule-set.ts';
import { settleRequest } from '../../src/matching/settlements.ts';
import type { RuleTable } from '../../src/limiter/rules.ts';
import { FakeDriver } from '../partition/fake-driver.ts';

interface DrivenClusterInit {
  readonly partitions: number;
  readonly partitionOf: (key: string) => number;
  /** The partitions that the asked node leads. */
  readonly leads?: readonly number[];
  readonly ruleSet: RuleSet;
  readonly table: RuleTable;
}

/** Runs one turn; true if there was anything to propose. */
function turn(driver: FakeDriver): boolean {
  const isProposed = driver.turn() !== undefined;
  driver.commitAll();
  return isProposed;
}

export class DrivenCluster {
  readonly partitions: readonly FakeDriver[];
  readonly requests: MatchedRequests;
  /** Partitions that answer nothing. */
  readonly silent = new Set<number>();
  readonly #partitionOf: (key: string) => number;
  #attempts = 0;
  #ruleSet: RuleSet;
  #earlier: readonly RuleSet[] = [];

  constructor({ partitions, partitionOf, leads = [], ruleSet, table }: DrivenClusterInit) {
    this.#partitionOf = partitionOf;
    this.#ruleSet = ruleSet;
    this.partitions = Array.from({ length: partitions }, () => FakeDriver.leading({ table }));
    this.requests = new MatchedRequests({
      earlier: () => this.#earlier,
      ruleSet: () => this.#ruleSet,
      partitionOf,
      ask: (request, done) => {
        const partition = partitionOf(request.userId);
        const driver = this.partitions[partition]!;
        if (this.silent.has(partition))
          done({ kind: 'unavailable', reason: 'no_leader', proposed: false } as never, partition);
        else
          driver.partition.decide(request, driver.now + 1_000, (answer) => done(answer as never, partition));
      },
      deniedHere: (request) => {
        const partition = partitionOf(request.userId);
        return leads.includes(partition)
          ? this.partitions[partition]?.partition.deniedAtOnce(request)
          : undefined;
      },
      tried: () => undefined,
      newAttempt: () => (this.#attempts += 1),
      monotonicMillis: () => 0,
      listenerMillis: () => 0,
      deadlineMillis: 1_000,
      waitingMax: 1,
      degraded: new DegradedDecisions({
        takeLocal: () => expect.fail('no rule is local'),
        monotonicMillis: () => 0,
        changed: () => expect.fail('all rules are closed'),
      }),
    });
  }

  /** Puts other rules in force everywhere. @param earlier rules that were in force recently */
  follow(ruleSet: RuleSet, table: RuleTable, earlier: readonly RuleSet[]): void {
    this.#ruleSet = ruleSet;
    this.#earlier = earlier;
    for (const { partition } of this.partitions) partition.wantRules(table);
    this.#commit();
  }

  ask(
    descriptors: Readonly<Record<string, string>>,
    requestId?: string,
    cost?: number,
    settle?: true,
  ): AskAnswer {
    const reported: AskAnswer[] = [];
    const question: Question = { descriptors: new Map(Object.entries(descriptors)), requestId, cost, settle };
    if (settle === true && requestId !== undefined)
      settleRequest(this.requests, question, (answer) => reported.push(answer));
    else this.requests.ask(question, (answer) => reported.push(answer));
    this.#commit();
    return reported[0] ?? expect.fail('nobody answered');
  }

  refund(descriptors: Readonly<Record<string, string>>, requestId: string): RefundQuestionAnswer {
    const reported: RefundQuestionAnswer[] = [];
    const refund = { descriptors: new Map(Object.entries(descriptors)), requestId };
    this.requests.refund(refund, (answer) => reported.push(answer));
    this.#commit();
    return reported[0] ?? expect.fail('nobody answered');
  }

  /** Runs turns until no partition proposes anything. */
  #commit(): void {
    while (this.partitions.map(turn).includes(true));
  }

  get entries(): number {
    return this.partitions.reduce((sum, { committed }) => sum + committed.length, 0);
  }

  /** The remaining cost of a key. */
  left(userId: string, ruleId: string): number | undefined {
    const [answer] = this.partitions[this.#partitionOf(userId)]!.ask({ ask: 'peek', userId, ruleId });
    return answer?.kind === 'keyStatus' ? answer.keyStatus.limits[0]?.remaining : undefined;
  }
}
