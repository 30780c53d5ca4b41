/**
 * Confirms that a node's rules are in force when these rules find no limit for a request.
 *
 * If rules find limits, the partitions of these limits check the rule version. If they find none, no partition
 * would be asked, and a node with old rules (just started, paused, or cut off) could let through what newer rules
 * limit, or deny what newer rules allow. So the node asks one partition for its rule version. The leader of that
 * partition confirms its lead with a quorum, and a change of the rules is acknowledged only when all partitions
 * have it.
 */
import type { Invalid, Unavailable } from '../api/answer.ts';
import type { AskAnswer } from '../api/question.ts';
import type { PeekAnswer } from '../api/peek.ts';
import { ANY_RULE } from '../api/stated-rule.ts';
import type { MatchedRequestsInit } from './matched-requests-init.ts';
import type { Asking } from './open-request.ts';
import { RULES_CHANGED } from './node-refusals.ts';
import type { RuleSet } from './rule-set.ts';
import { isLeftToFailModes } from './part-outcome.ts';

type Uncounted = Extract<AskAnswer, { kind: 'unlimited' | 'unmatched' }>;
type Confirmed = (refusal: Unavailable | undefined, partition: number) => void;

/** Confirms the rules of one node. */
export class ConfirmedRules {
  readonly #ask: MatchedRequestsInit['ask'];
  /**
   * Names the key, and so the partition, that is asked. All requests ask the same one, so one quorum
   * round serves them; if it fails, the next request asks another.
   */
  #asked = 0;

  constructor({ ask }: Pick<MatchedRequestsInit, 'ask'>) {
    this.#ask = ask;
  }

  /**
   * Answers a request that no limit applies to: `unlimited`, or `unmatched` if the rules deny requests that no rule
   * matches.
   *
   * @param ruleSet the rules that found no limit
   * @param done called once
   */
  reportUncounted(
    ruleSet: RuleSet,
    { unmatched, deadlineMillis }: Pick<Asking, 'unmatched' | 'deadlineMillis'>,
    done: (answer: Uncounted | Unavailable, partition: number) => void,
  ): void {
    const kind = unmatched === 'deny' ? 'unmatched' : 'unlimited';
    const hasFailModes = kind === 'unlimited' && !ruleSet.isClosed;
    this.areInForce(ruleSet, deadlineMillis, (refusal, partition) => {
      const isReported = refusal === undefined || (hasFailModes && isLeftToFailModes(refusal));
      if (isReported) done({ kind, rulesVersion: ruleSet.version }, 0);
      else done(refusal, partition);
    });
  }

  /**
   * Answers with the refusal that this node's rules gave. If the request names a rule, newer rules may contain it.
   * Then a partition is asked first, and `report` gets its answer if this node's rules are not in force.
   */
  refuse(
    matched: Invalid | Unavailable,
    ruleSet: RuleSet,
    { request, deadlineMillis, done }: Pick<Asking, 'request' | 'deadlineMillis' | 'done'>,
    report: (answer: Unavailable, partition: number) => void,
  ): void {
    if (request.rule === undefined) return done(matched, 0);
    this.areInForce(ruleSet, deadlineMillis, (refusal, partition) => {
      if (refusal === undefined) done(matched, 0);
      else report(refusal, partition);
    });
  }

  /**
   * Asks one partition whether it has newer rules than this node.
   *
   * @param done called once: undefined if there are none, else why that is not certain
   */
  areInForce({ version }: RuleSet, deadlineMillis: number, done: Confirmed): void {
    const asked = this.#asked;
    this.#ask(
      { ask: 'peek', userId: String(asked), ruleId: ANY_RULE },
      (answer, partition) => {
        if (answer.kind === 'unavailable') this.#asked = asked + 1;
        done(refusalIn(answer, version), partition);
      },
      deadlineMillis,
    );
  }
}

/** A partition with older rules is behind this node; only newer ones mean that this node is behind. */
function refusalIn(answer: PeekAnswer, rulesVersion: number): Unavailable | undefined {
  if (answer.kind === 'unavailable') return answer;
  const isInForce = answer.kind === 'keyStatus' && answer.keyStatus.rulesVersion <= rulesVersion;
  return isInForce ? undefined : RULES_CHANGED;
}
