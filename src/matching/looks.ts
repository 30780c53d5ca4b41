/**
 * Peeks for the API: reports the status of a key under all rules that count by such keys, or under one rule. It
 * finds the rules; the partition of the key reports their status.
 */
import type { Invalid } from '../api/answer.ts';
import type { LookAnswer, LookQuestion, LookRequest } from '../api/look.ts';
import { isStatedId } from '../api/stated-rule.ts';
import type { DoneWith } from '../api/user-request.ts';
import { RULES_CHANGED, STARTING } from './node-refusals.ts';
import type { RuleBook } from './rule-book.ts';

/** What `Peeks` needs. */
export interface LooksInit {
  /** See `MatchedRequestsInit`. */
  readonly book: () => RuleBook | 'starting';
  readonly ask: (request: LookRequest, done: DoneWith<LookRequest>) => void;
}

/** The peek part of the API of one node. */
export class Looks {
  readonly #init: LooksInit;

  constructor(init: LooksInit) {
    this.#init = init;
  }

  /**
   * Reports the status of a key. Invalid if the rule does not count by such keys.
   *
   * @param question well-formed
   * @param done called once
   */
  ask({ key, rule }: LookQuestion, done: DoneWith<LookRequest>): void {
    const { book: bookOf, ask } = this.#init;
    const book = bookOf();
    if (book === 'starting') return done(STARTING, 0);
    const isStated = rule !== undefined && isStatedId(rule);
    const ids = isStated ? [rule] : book.limitIdsOf(key, rule);
    if (ids === undefined) return done(noSuchRule(rule ?? '', key), 0);
    const [only, ...others] = ids;
    const ruleId = others.length === 0 ? only : undefined;
    ask({ ask: 'look', userId: key, ruleId }, (answer, partition) => {
      if (answer.kind !== 'standing' || ruleId !== undefined) return done(answer, partition);
      if (ids.length === 0 && book.deniesKey(key)) return done(unmatchedBy(book, answer), partition);
      const limits = answer.standing.limits.filter((limit) => ids.includes(limit.ruleId));
      done({ ...answer, standing: { ...answer.standing, limits } }, partition);
    });
  }
}

/** "No rule matches this key" holds only if the partition has no newer rules. */
function unmatchedBy(
  { version }: RuleBook,
  { standing }: Extract<LookAnswer, { kind: 'standing' }>,
): LookAnswer {
  if (standing.rulesVersion > version) return RULES_CHANGED;
  return { kind: 'standing', standing: { ...standing, limits: [], isUnmatched: true } };
}

function noSuchRule(rule: string, key: string): Invalid {
  return {
    kind: 'invalid',
    field: 'rule',
    message: `rule must count by keys like '${key}', but '${rule}' does not`,
  };
}
