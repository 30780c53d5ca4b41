/** How a user stands, by the judgement that denies at once. It changes nothing. */

import type { LimitStanding } from '../api/answer.ts';
import type { LookRequest, Standing } from '../api/look.ts';
import type { Judgement } from './judge.ts';
import type { Question } from './question.ts';
import { DEFAULT_RULE } from './rules.ts';
import type { LimiterState } from './state/limiter-state.ts';
import type { DecidedAt } from './decisions-without-limit.ts';

/** What a look asks under each rule, unless it says another cost or time. */
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
 * Under every rule of the table, or one; undefined if there is no rule to say it by.
 *
 * @param now group time
 * @param place of the state as it is
 */
export function standingAt(
  state: LimiterState,
  { userId, ruleId, cost = 1, timestampMillis }: LookRequest,
  {
    judgement,
    now,
    place,
  }: { readonly judgement: Judgement; readonly now: number; readonly place: DecidedAt },
): Standing | undefined {
  state.lookUp({ userId });
  judgement.findRecord(state, now);
  const ruleIds = ruleId === undefined ? (state.table?.rules ?? []).map(({ id }) => id) : [ruleId];
  const question = { ...ONE_MORE, cost, timestampMillis };
  const limits: LimitStanding[] = [];
  for (const named of ruleIds) {
    const keys = state.keysFor(named);
    if (keys === undefined) return undefined;
    judgement.judgeKey(state.name, keys, question, now);
    limits.push(judgement.standing(place));
  }
  const { term, index, rulesVersion } = place;
  const standing = { limits, decided: { term, index, timeMillis: now }, rulesVersion };
  if (!judgement.isBlocked) return standing;
  const { blockedUntilMillis } = judgement;
  return { ...standing, isBlocked: true, ...(blockedUntilMillis !== undefined && { blockedUntilMillis }) };
}
