/** How a key stands: under all rules that count by such keys, or under one. It finds which those are; partitions say how it stands. */
import type { Invalid } from '../api/answer.ts';
import type { LookAnswer, LookQuestion, LookRequest } from '../api/look.ts';
import { isStatedId } from '../api/stated-rule.ts';
import type { DoneWith } from '../api/user-request.ts';
import { RULES_CHANGED, STARTING } from './node-refusals.ts';
import type { RuleBook } from './rule-book.ts';

export interface LooksInit {
  /** See `MatchedRequestsInit`. */
  readonly book: () => RuleBook | 'starting';
  readonly ask: (request: LookRequest, done: DoneWith<LookRequest>) => void;
}

export class Looks {
  readonly #init: LooksInit;

  constructor(init: LooksInit) {
    this.#init = init;
  }

  /** @param question well-formed; `done` is told once */
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

/** By rules that are in force still, or nobody knows. */
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
    message: `rule must count by such a key as '${key}', but '${rule}' does not`,
  };
}
