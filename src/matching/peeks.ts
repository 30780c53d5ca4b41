/**
 * Peeks for the API: reports the status of a key under all rules that count by such keys, or under one rule. It
 * finds the rules; the partition of the key reports their status.
 */
import type { Invalid } from '../api/answer.ts';
import type { PeekAnswer, PeekQuestion, PeekRequest } from '../api/peek.ts';
import { isStatedId } from '../api/stated-rule.ts';
import type { DoneWith } from '../api/user-request.ts';
import { RULES_CHANGED, STARTING } from './node-refusals.ts';
import type { RuleSet } from './rule-set.ts';

/** What `Peeks` needs. */
export interface PeeksInit {
  /** See `MatchedRequestsInit`. */
  readonly ruleSet: () => RuleSet | 'starting';
  readonly ask: (request: PeekRequest, done: DoneWith<PeekRequest>) => void;
}

/** The peek part of the API of one node. */
export class Peeks {
  readonly #init: PeeksInit;

  constructor(init: PeeksInit) {
    this.#init = init;
  }

  /**
   * Reports the status of a key. Invalid if the rule does not count by such keys.
   *
   * @param question well-formed
   * @param done called once
   */
  ask({ key, rule }: PeekQuestion, done: DoneWith<PeekRequest>): void {
    const { ruleSet: ruleSetOf, ask } = this.#init;
    const ruleSet = ruleSetOf();
    if (ruleSet === 'starting') return done(STARTING, 0);
    const isStated = rule !== undefined && isStatedId(rule);
    const ids = isStated ? [rule] : ruleSet.limitIdsOf(key, rule);
    if (ids === undefined) return done(noSuchRule(rule ?? '', key), 0);
    const [only, ...others] = ids;
    const ruleId = others.length === 0 ? only : undefined;
    ask({ ask: 'peek', userId: key, ruleId }, (answer, partition) => {
      if (answer.kind !== 'keyStatus' || ruleId !== undefined) return done(answer, partition);
      if (ids.length === 0 && ruleSet.deniesKey(key)) return done(unmatchedBy(ruleSet, answer), partition);
      const limits = answer.keyStatus.limits.filter((limit) => ids.includes(limit.ruleId));
      done({ ...answer, keyStatus: { ...answer.keyStatus, limits } }, partition);
    });
  }
}

/** "No rule matches this key" holds only if the partition has no newer rules. */
function unmatchedBy(
  { version }: RuleSet,
  { keyStatus }: Extract<PeekAnswer, { kind: 'keyStatus' }>,
): PeekAnswer {
  if (keyStatus.rulesVersion > version) return RULES_CHANGED;
  return { kind: 'keyStatus', keyStatus: { ...keyStatus, limits: [], isUnmatched: true } };
}

function noSuchRule(rule: string, key: string): Invalid {
  return {
    kind: 'invalid',
    field: 'rule',
    message: `rule must count by keys like '${key}', but '${rule}' does not`,
  };
}
