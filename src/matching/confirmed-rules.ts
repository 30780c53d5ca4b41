/**
 * Whether the rules of this node are those in force, where they find no limit. Where they find some, partitions say so with their answers; where
 * they find none nobody would be asked, and a node that has just started, has slept or is cut off would let through what other rules limit, or
 * deny what other rules are for. So some partition is asked: a quorum confirms what its leader says, and a change of the rules is answered when all partitions have it.
 * It decides nothing else.
 */
import type { Invalid, Unavailable } from '../api/answer.ts';
import type { AskAnswer } from '../api/question.ts';
import type { LookAnswer } from '../api/look.ts';
import { ANY_RULE } from '../api/stated-rule.ts';
import type { MatchedRequestsInit } from './matched-requests-init.ts';
import { RULES_CHANGED } from './node-refusals.ts';
import type { Asking } from './open-request.ts';
import type { RuleBook } from './rule-book.ts';
import { isLeftToFailModes } from './share-outcome.ts';

type Uncounted = Extract<AskAnswer, { kind: 'unlimited' | 'unmatched' }>;
type Confirmed = (refusal: Unavailable | undefined, partition: number) => void;

export class ConfirmedRules {
  readonly #ask: MatchedRequestsInit['ask'];
  /** Names the partition that is asked: the same by all, so that they share what a quorum is asked; another one where it fails. */
  #asked = 0;

  constructor({ ask }: Pick<MatchedRequestsInit, 'ask'>) {
    this.#ask = ask;
  }

  /** @param book which has no limit for a request @param done told once */
  tellUncounted(
    book: RuleBook,
    { unmatched, deadlineMillis }: Pick<Asking, 'unmatched' | 'deadlineMillis'>,
    done: (answer: Uncounted | Unavailable, partition: number) => void,
  ): void {
    const kind = unmatched === 'deny' ? 'unmatched' : 'unlimited';
    const hasFailModes = kind === 'unlimited' && !book.isClosed;
    this.areInForce(book, deadlineMillis, (refusal, partition) => {
      const isTold = refusal === undefined || (hasFailModes && isLeftToFailModes(refusal));
      if (isTold) done({ kind, rulesVersion: book.version }, 0);
      else done(refusal, partition);
    });
  }

  /**
   * The rules of this node refuse a request. If it named a rule, the cluster may have newer rules that have it: a partition is asked,
   * and `tell` gets what that answers if the rules of this node are not in force.
   */
  refuse(
    matched: Invalid | Unavailable,
    book: RuleBook,
    { request, deadlineMillis, done }: Pick<Asking, 'request' | 'deadlineMillis' | 'done'>,
    tell: (answer: Unavailable, partition: number) => void,
  ): void {
    if (request.rule === undefined) return done(matched, 0);
    this.areInForce(book, deadlineMillis, (refusal, partition) => {
      if (refusal === undefined) done(matched, 0);
      else tell(refusal, partition);
    });
  }

  /** @param done told once: why they may not be, undefined if they are */
  areInForce({ version }: RuleBook, deadlineMillis: number, done: Confirmed): void {
    const asked = this.#asked;
    this.#ask(
      { ask: 'look', userId: String(asked), ruleId: ANY_RULE },
      (answer, partition) => {
        if (answer.kind === 'unavailable') this.#asked = asked + 1;
        done(refusalIn(answer, version), partition);
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
