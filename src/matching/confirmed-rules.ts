/**
 * Whether the rules of this node are those in force, where they find no limit. Where they find some, partitions say so with their answers; where
 * they find none nobody would be asked, and a node that has just started, has slept or is cut off would let through what other rules limit.
 * So whoever leads some partition is asked, and believed for a while. It decides nothing else.
 */
import type { Unavailable } from '../api/answer.ts';
import type { AskAnswer } from '../api/question.ts';
import type { LookAnswer } from '../api/look.ts';
import { statedRuleId } from '../api/stated-rule.ts';
import type { DescribedRequestsInit } from './described-requests-init.ts';
import { RULES_CHANGED } from './node-refusals.ts';
import type { RuleBook } from './rule-book.ts';
import { isLeftToFailModes } from './share-outcome.ts';

/** For so long other rules may be in force before this node hears of them. */
export const CONFIRMED_MILLIS = 1_000;
/** Every partition knows it, whatever its rules. */
const ANY_RULE = statedRuleId(0, 1);

type Unlimited = Extract<AskAnswer, { kind: 'unlimited' }>;

export class ConfirmedRules {
  readonly #init: Pick<DescribedRequestsInit, 'ask' | 'monotonicMillis'>;
  #untilMillis = Number.NEGATIVE_INFINITY;
  #looks = 0;

  constructor(init: Pick<DescribedRequestsInit, 'ask' | 'monotonicMillis'>) {
    this.#init = init;
  }

  /** @param book which has no limit for a request @param done told once */
  tellUnlimited(
    book: RuleBook,
    deadlineMillis: number,
    done: (answer: Unlimited | Unavailable, partition: number) => void,
  ): void {
    this.areInForce(book, deadlineMillis, (refusal, partition) => {
      const mayPass = refusal === undefined || (!book.isClosed && isLeftToFailModes(refusal));
      if (mayPass) done({ kind: 'unlimited', rulesVersion: book.version }, 0);
      else done(refusal, partition);
    });
  }

  /** @param done told once: why they may not be, undefined if they are */
  areInForce(
    { version }: RuleBook,
    deadlineMillis: number,
    done: (refusal: Unavailable | undefined, partition: number) => void,
  ): void {
    const { ask, monotonicMillis } = this.#init;
    const askedMillis = monotonicMillis();
    if (askedMillis < this.#untilMillis) return done(undefined, 0);
    // Each time another partition: one without a leader must not stand for all.
    this.#looks += 1;
    ask(
      { ask: 'look', userId: String(this.#looks), ruleId: ANY_RULE },
      (answer, partition) => {
        const refusal = refusalIn(answer, version);
        if (refusal === undefined) this.#untilMillis = askedMillis + CONFIRMED_MILLIS;
        done(refusal, partition);
      },
      deadlineMillis,
    );
  }
}

/** What is older there is behind this node, and not the other way round. */
function refusalIn(answer: LookAnswer, rulesVersion: number): Unavailable | undefined {
  if (answer.kind === 'unavailable') return answer;
  const isInForce = answer.kind === 'standing' && answer.standing.rulesVersion <= rulesVersion;
  return isInForce ? undefined : RULES_CHANGED;
}
