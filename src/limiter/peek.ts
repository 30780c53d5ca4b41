/**
 * Answers peeks: the status of a key under one or all rules. It uses the judgement that also produces denials, and
 * changes nothing.
 */

import type { LimitStatus } from '../api/answer.ts';
import type { PeekRequest, KeyStatus } from '../api/peek.ts';
import type { Judgement } from './judge.ts';
import type { Question } from './question.ts';
import { DEFAULT_RULE } from './rules.ts';
import type { LimiterState } from './state/limiter-state.ts';
import type { DecidedAt } from './decisions-without-limit.ts';

/** The question of a peek under each rule, unless the peek names another cost or time. */
const ONE_MORE: Question = {
  ruleId: DEFAULT_RULE,
  cost: 1,
  timestampMillis: undefined,
  hasRequestId: false,
  askedDigest: undefined,
  ifRemembered: false,
  isSettled: false,
  attempt: undefined,
  guard: undefined,
};

/**
 * The status of a key under every rule of the table, or under one; undefined if that rule does not exist.
 *
 * @param now group time in milliseconds
 * @param place the position of the state that is read
 */
export function statusAt(
  state: LimiterState,
  { userId, ruleId, cost = 1, timestampMillis }: PeekRequest,
  {
    judgement,
    now,
    place,
  }: { readonly judgement: Judgement; readonly now: number; readonly place: DecidedAt },
): KeyStatus | undefined {
  state.lookUp({ userId });
  judgement.findRecord(state, now);
  const ruleIds = ruleId === undefined ? (state.table?.rules ?? []).map(({ id }) => id) : [ruleId];
  const question = { ...ONE_MORE, cost, timestampMillis };
  const limits: LimitStatus[] = [];
  for (const named of ruleIds) {
    const keys = state.keysFor(named);
    if (keys === undefined) return undefined;
    judgement.judgeKey(state.name, keys, question, now);
    limits.push(judgement.keyStatus(place));
  }
  const { term, index, rulesVersion } = place;
  const keyStatus = { limits, decided: { term, index, timeMillis: now }, rulesVersion };
  if (!judgement.isBlocked) return keyStatus;
  const { blockedUntilMillis } = judgement;
  return { ...keyStatus, isBlocked: true, ...(blockedUntilMillis !== undefined && { blockedUntilMillis }) };
}
