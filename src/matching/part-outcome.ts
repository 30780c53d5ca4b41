/**
 * Splits the limits of a request into parts, one per partition, and combines the answers of these parts. Pure
 * functions.
 */
import type { AllowAnswer, Decision, Invalid } from '../api/answer.ts';
import type { CustomerRecord } from '../api/customer-record.ts';
import type { AskAnswer } from '../api/question.ts';
import { jointGrant, limitsOf } from '../api/joint-answer.ts';
import type { PeekAnswer } from '../api/peek.ts';
import type { AllowRequest } from '../api/request.ts';
import type { UnavailableReason } from '../api/refusals.ts';
import { waitMillisOf } from '../api/waiting.ts';
import { compareText } from '../rules/native-scope.ts';
import type { MatchedLimit } from './matched-limit.ts';

/**
 * The limits of a request in one partition. The router finds the partition by `limits[0].userId`, and that key keeps the
 * request id.
 */
export interface RequestPart {
  readonly partition: number;
  readonly limits: readonly [MatchedLimit, ...MatchedLimit[]];
}

/**
 * Splits limits by partition. The parts are in the order of the limits, except that the key that keeps the
 * request's id comes first, in its part and overall. This is the key of the user alone, else a key that contains
 * the user, else any other; ties are broken by text. The order does not depend on the order of the rules, so a
 * retry finds its grant after rules were reordered. Each part is sorted this way, as any of them may become the
 * first (`ownFirst`).
 */
export function partsOfRequest(
  limits: readonly MatchedLimit[],
  partitionOf: (userId: string) => number,
): readonly RequestPart[] {
  const [first] = limits;
  if (first === undefined) return [];
  // Most requests have one limit.
  if (isOne(limits)) return [{ partition: partitionOf(first.userId), limits }];
  const parts = new Map<number, [MatchedLimit, ...MatchedLimit[]]>();
  for (const limit of limits) {
    const partition = partitionOf(limit.userId);
    const known = parts.get(partition);
    if (known === undefined) parts.set(partition, [limit]);
    else known.push(limit);
  }
  const [one, ...others] = [...parts].map(([partition, ofPartition]): RequestPart => ({
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

/** 0: key of the user alone, 1: key that contains the user, 2: any other key. */
function rankOf(key: string): number {
  if (key.startsWith('user=') && !key.includes(',')) return 0;
  return key.startsWith('user=') || key.includes(',user=') ? 1 : 2;
}

/** A part with its answer; undefined: it has not answered yet. */
export interface AnsweredPart {
  readonly part: RequestPart;
  readonly answer: AllowAnswer | undefined;
}

/**
 * What the answers of all parts mean together:
 *
 * - `granted`: all granted
 * - `refused`: with the answer of this part
 * - `undecided`: no partition could decide these limits, none of their rules is `closed`, and all other parts
 *   granted
 */
export type PartOutcome =
  | { readonly kind: 'granted' }
  | { readonly kind: 'refused'; readonly part: RequestPart; readonly answer: AllowAnswer }
  | {
      readonly kind: 'undecided';
      readonly part: RequestPart;
      readonly limits: readonly [MatchedLimit, ...MatchedLimit[]];
    };

const GRANTED: PartOutcome = { kind: 'granted' };

/**
 * Whether an "unavailable" for this reason is left to the fail modes. It is not if the node is not a member or must
 * catch up first: that says nothing about the limits.
 */
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

/** Combines answers. Parts without an answer are ignored. */
export function outcomeOf(answers: readonly AnsweredPart[]): PartOutcome {
  const refusals: RefusedPart[] = [];
  for (const { part, answer } of answers)
    if (answer !== undefined && !isGrant(answer)) refusals.push({ part, answer });
  const worst = worstOf(refusals);
  if (worst === undefined) return GRANTED;
  const undecided = refusals.filter(({ answer }) => answer.kind === 'unavailable');
  const isClosed = worst.answer.kind !== 'unavailable' || !undecided.every(followsFailModes);
  if (isClosed) return { kind: 'refused', ...worst };
  const denied = worstOf(refusals.filter(({ answer }) => answer.kind === 'decision'));
  if (denied !== undefined) return { kind: 'refused', ...denied };
  const [first, ...others] = worst.part.limits;
  const further = undecided.filter(({ part }) => part !== worst.part).flatMap(({ part }) => part.limits);
  return { kind: 'undecided', part: worst.part, limits: [first, ...others, ...further] };
}

/** A part whose answer is not a grant. */
export type RefusedPart = AnsweredPart & { readonly answer: AllowAnswer };

/** No partition could decide, for a reason that is left to the fail modes. */
export function isLeftToFailModes(answer: AskAnswer | PeekAnswer): boolean {
  return answer.kind === 'unavailable' && FOLLOWS_FAIL_MODES[answer.reason];
}

/** The answer is left to the fail modes, and none of the rules of this part is `closed`. */
export function followsFailModes({ part, answer }: RefusedPart): boolean {
  if (!isLeftToFailModes(answer)) return false;
  return part.limits.every(({ rule }) => rule.failMode !== 'closed');
}

/**
 * Picks the answer to report: an error first, then "unavailable", then the denial with the longest wait; ties go to
 * the first.
 */
export function worstOf(refusals: readonly RefusedPart[]): RefusedPart | undefined {
  let found: RefusedPart | undefined;
  for (const one of refusals)
    if (found === undefined || badness(one.answer) > badness(found.answer)) found = one;
  return found;
}

const WAIT_MAX = 2 ** 48;
const UNAVAILABLE_RANK = 2 ** 50;
const ERROR_RANK = 2 ** 51;

/** Denials by the length of the wait, then blocks, then "unavailable", then errors. */
function badness(answer: AllowAnswer): number {
  switch (answer.kind) {
    case 'decision':
      // A block takes precedence over any denial by a limit.
      return (
        Math.min(waitMillisOf(answer.decision), WAIT_MAX) +
        (answer.decision.isBlocked === true ? WAIT_MAX : 0)
      );
    case 'unavailable':
      // The node can ask again at once, by the other rules.
      return wantsOtherRules(answer) ? UNAVAILABLE_RANK + 1 : UNAVAILABLE_RANK;
    case 'conflict':
    case 'invalid':
      return ERROR_RANK;
  }
}

type Grant = Extract<AllowAnswer, { kind: 'decision' }> & { readonly decision: { readonly allowed: true } };

/** The answer is a grant. */
export function isGrant(answer: AllowAnswer): answer is Grant {
  return answer.kind === 'decision' && answer.decision.allowed;
}

/** Whether this answer lets the request through. */
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

/**
 * It is known whether the request was charged: it was if the answer is a grant, otherwise it was not. False: nobody
 * knows.
 */
export function isCertain(answer: AllowAnswer): boolean {
  return answer.kind !== 'unavailable' || !answer.proposed;
}

/** The new record of the customer, if the partition refused the request because its record has changed. */
export function recordIn(answer: AllowAnswer): CustomerRecord | undefined {
  return answer.kind === 'unavailable' && !answer.proposed ? answer.record : undefined;
}

/** The node and the partition have different rules: the partition does not know a rule, or says `rules_changed`. */
export function wantsOtherRules(answer: AskAnswer): boolean {
  return (
    (answer.kind === 'invalid' && answer.field === 'rule') ||
    (answer.kind === 'unavailable' && answer.reason === 'rules_changed' && !answer.proposed)
  );
}

/**
 * The answer to a request with one limit, if its partition has decided it. Undefined: the answer needs the general
 * path.
 */
export function wholeAnswer(
  { ruleId, userId: key }: Pick<AllowRequest, 'ruleId' | 'userId'>,
  answer: AllowAnswer,
): AskAnswer | undefined {
  if (answer.kind !== 'decision' || answer.decision.ruleId !== ruleId) return undefined;
  const { kind, decision, isRepeat } = answer;
  return isRepeat === true ? { kind, decision, isRepeat, key } : { kind, decision, key };
}

/** Adds the key that the deciding rule counted by. */
export function withKey(answer: AskAnswer, answered: readonly AnsweredPart[]): AskAnswer {
  if (answer.kind !== 'decision') return answer;
  const { ruleId } = answer.decision;
  for (const { part } of answered)
    for (const limit of part.limits) if (limit.ruleId === ruleId) return { ...answer, key: limit.userId };
  return answer;
}

/**
 * Combines the answers of all parts: a denial lists all limits that were decided, a grant reports the one with the
 * least remaining.
 */
export function together(answer: AllowAnswer, reserved: readonly AnsweredPart[]): AskAnswer | Invalid {
  if (answer.kind !== 'decision' || answer.isRepeat === true || reserved.length === 0) return answer;
  if (answer.decision.isBlocked === true) return answer;
  const decisions = [answer.decision, ...reserved.flatMap((one) => decisionsOf(one, answer.decision))];
  const { allowed, decided, rulesVersion } = answer.decision;
  if (!allowed) return { ...answer, decision: { ...answer.decision, limits: limitsOf(decisions) } };
  return { ...answer, decision: { ...jointGrant(decisions), decided, rulesVersion } };
}

function decisionsOf({ answer }: AnsweredPart, decision: Decision): readonly Decision[] {
  return answer?.kind === 'decision' && answer.decision !== decision ? [answer.decision] : [];
}
