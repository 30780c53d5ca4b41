/** What the answers of partitions mean for a request whose limits they share. Pure. */
import type { AllowAnswer, Decision, Invalid } from '../api/answer.ts';
import type { CustomerRecord } from '../api/customer-record.ts';
import type { AskAnswer } from '../api/question.ts';
import { jointGrant, limitsOf } from '../api/joint-answer.ts';
import type { LookAnswer } from '../api/look.ts';
import type { AllowRequest } from '../api/request.ts';
import type { UnavailableReason } from '../api/refusals.ts';
import { waitMillisOf } from '../api/waiting.ts';
import { compareText } from '../rules/native-scope.ts';
import type { MatchedLimit } from './matched-limit.ts';

/** The limits of a request in one partition; its first key is that of the request which asks for them. */
export interface Share {
  readonly partition: number;
  readonly limits: readonly [MatchedLimit, ...MatchedLimit[]];
}

/**
 * By partition, in the order of the limits, but for who keeps the request's id: the first key of the first share. The user's key goes
 * before one that names the user among others, and that before any other; of several the first by its text. It is the first in every
 * share, as any of them may become the first (`ownFirst`). So a retry finds its grant whatever order the rules are in.
 */
export function sharesOf(
  limits: readonly MatchedLimit[],
  partitionOf: (userId: string) => number,
): readonly Share[] {
  const [first] = limits;
  if (first === undefined) return [];
  // Most requests have one limit.
  if (isOne(limits)) return [{ partition: partitionOf(first.userId), limits }];
  const shares = new Map<number, [MatchedLimit, ...MatchedLimit[]]>();
  for (const limit of limits) {
    const partition = partitionOf(limit.userId);
    const known = shares.get(partition);
    if (known === undefined) shares.set(partition, [limit]);
    else known.push(limit);
  }
  const [one, ...others] = [...shares].map(([partition, ofPartition]): Share => ({
    partition,
    limits: keeperFirst(ofPartition, keyOf),
  }));
  return one === undefined ? [] : keeperFirst([one, ...others], ({ limits: [keeper] }) => keeper.userId);
}

function isOne(limits: readonly MatchedLimit[]): limits is readonly [MatchedLimit] {
  return limits.length === 1;
}

function keyOf({ userId }: MatchedLimit): string {
  return userId;
}

function keeperFirst<T>(all: readonly [T, ...T[]], key: (one: T) => string): readonly [T, ...T[]] {
  const keeper = all.reduce((a, b) => (byKey(key(b), key(a)) < 0 ? b : a));
  return keeper === all[0] ? all : [keeper, ...all.filter((one) => one !== keeper)];
}

function byKey(a: string, b: string): number {
  return a === b ? 0 : rankOf(a) - rankOf(b) || compareText(a, b);
}

/** That of the user alone, one that names the user as well, any other. */
function rankOf(key: string): number {
  if (key.startsWith('user=') && !key.includes(',')) return 0;
  return key.startsWith('user=') || key.includes(',user=') ? 1 : 2;
}

/** Undefined: there is no answer yet. */
export interface AnsweredShare {
  readonly share: Share;
  readonly answer: AllowAnswer | undefined;
}

/**
 * - `granted`: by all of them
 * - `refused`: with the answer of this share
 * - `undecided`: nobody could decide these limits, none of their rules is `closed`, and all others granted
 */
export type ShareOutcome =
  | { readonly kind: 'granted' }
  | { readonly kind: 'refused'; readonly share: Share; readonly answer: AllowAnswer }
  | {
      readonly kind: 'undecided';
      readonly share: Share;
      readonly limits: readonly [MatchedLimit, ...MatchedLimit[]];
    };

const GRANTED: ShareOutcome = { kind: 'granted' };

/** Whether fail modes are followed. Who does not belong to the cluster, or decides by other rules, says nothing for them. */
const FOLLOWS_FAIL_MODES: Readonly<Record<UnavailableReason, boolean>> = {
  no_leader: true,
  deadline: true,
  overloaded: true,
  low_disk: true,
  at_capacity: true,
  starting: true,
  unknown_outcome: true,
  not_member: false,
  rules_changed: false,
  customer_changed: false,
  draining: false,
};

export function outcomeOf(answers: readonly AnsweredShare[]): ShareOutcome {
  const refusals: RefusedShare[] = [];
  for (const { share, answer } of answers)
    if (answer !== undefined && !isGrant(answer)) refusals.push({ share, answer });
  const worst = worstOf(refusals);
  if (worst === undefined) return GRANTED;
  const undecided = refusals.filter(({ answer }) => answer.kind === 'unavailable');
  const isClosed = worst.answer.kind !== 'unavailable' || !undecided.every(followsFailModes);
  if (isClosed) return { kind: 'refused', ...worst };
  const denied = worstOf(refusals.filter(({ answer }) => answer.kind === 'decision'));
  if (denied !== undefined) return { kind: 'refused', ...denied };
  const [first, ...others] = worst.share.limits;
  const further = undecided.filter(({ share }) => share !== worst.share).flatMap(({ share }) => share.limits);
  return { kind: 'undecided', share: worst.share, limits: [first, ...others, ...further] };
}

export type RefusedShare = AnsweredShare & { readonly answer: AllowAnswer };

/** Nobody could decide, and what fail modes say is done. */
export function isLeftToFailModes(answer: AskAnswer | LookAnswer): boolean {
  return answer.kind === 'unavailable' && FOLLOWS_FAIL_MODES[answer.reason];
}

export function followsFailModes({ share, answer }: RefusedShare): boolean {
  if (!isLeftToFailModes(answer)) return false;
  return share.limits.every(({ rule }) => rule.failMode !== 'closed');
}

/** An error before what nobody could decide, and that before the longest denial. Of equal ones the first. */
export function worstOf(refusals: readonly RefusedShare[]): RefusedShare | undefined {
  let found: RefusedShare | undefined;
  for (const one of refusals)
    if (found === undefined || badness(one.answer) > badness(found.answer)) found = one;
  return found;
}

function badness(answer: AllowAnswer): number {
  switch (answer.kind) {
    case 'decision':
      // A block before any limit.
      return (
        Math.min(waitMillisOf(answer.decision), 2 ** 48) + (answer.decision.isBlocked === true ? 2 ** 48 : 0)
      );
    case 'unavailable':
      // It can be asked again at once, under the other rules.
      return wantsOtherRules(answer) ? 2 ** 50 + 1 : 2 ** 50;
    case 'conflict':
    case 'invalid':
      return 2 ** 51;
  }
}

type Grant = Extract<AllowAnswer, { kind: 'decision' }> & { readonly decision: { readonly allowed: true } };

export function isGrant(answer: AllowAnswer): answer is Grant {
  return answer.kind === 'decision' && answer.decision.allowed;
}

/** Does this answer let the request through? */
export function isAllowed(answer: AskAnswer): boolean {
  switch (answer.kind) {
    case 'decision':
      return answer.decision.allowed;
    case 'degraded':
      return answer.allowed;
    case 'unlimited':
      return true;
    case 'unmatched':
    case 'invalid':
    case 'conflict':
    case 'unavailable':
      return false;
  }
}

/** Whoever got this was certainly not charged, unless it is a grant. */
export function isCertain(answer: AllowAnswer): boolean {
  return answer.kind !== 'unavailable' || !answer.proposed;
}

/** The record of the request's customer is another one. */
export function recordIn(answer: AllowAnswer): CustomerRecord | undefined {
  return answer.kind === 'unavailable' && !answer.proposed ? answer.record : undefined;
}

/** A rule that is not there: this node knows of others than the partition has. */
export function wantsOtherRules(answer: AskAnswer): boolean {
  return (
    (answer.kind === 'invalid' && answer.field === 'rule') ||
    (answer.kind === 'unavailable' && answer.reason === 'rules_changed' && !answer.proposed)
  );
}

/** To a request under one limit, as most are, if its partition has decided it; undefined: there is more to be looked at. */
export function wholeAnswer(
  { ruleId, userId: key }: Pick<AllowRequest, 'ruleId' | 'userId'>,
  answer: AllowAnswer,
): AskAnswer | undefined {
  if (answer.kind !== 'decision' || answer.decision.ruleId !== ruleId) return undefined;
  const { kind, decision, isRepeat } = answer;
  return isRepeat === true ? { kind, decision, isRepeat, key } : { kind, decision, key };
}

/** With what was counted by the rule that binds. */
export function withKey(answer: AskAnswer, answered: readonly AnsweredShare[]): AskAnswer {
  if (answer.kind !== 'decision') return answer;
  const { ruleId } = answer.decision;
  for (const { share } of answered)
    for (const limit of share.limits) if (limit.ruleId === ruleId) return { ...answer, key: limit.userId };
  return answer;
}

/** All limits that were decided, and of a grant the one with least remaining. */
export function together(answer: AllowAnswer, reserved: readonly AnsweredShare[]): AskAnswer | Invalid {
  if (answer.kind !== 'decision' || answer.isRepeat === true || reserved.length === 0) return answer;
  if (answer.decision.isBlocked === true) return answer;
  const decisions = [answer.decision, ...reserved.flatMap((one) => decisionsOf(one, answer.decision))];
  const { allowed, decided, rulesVersion } = answer.decision;
  if (!allowed) return { ...answer, decision: { ...answer.decision, limits: limitsOf(decisions) } };
  return { ...answer, decision: { ...jointGrant(decisions), decided, rulesVersion } };
}

function decisionsOf({ answer }: AnsweredShare, told: Decision): readonly Decision[] {
  return answer?.kind === 'decision' && answer.decision !== told ? [answer.decision] : [];
}
