/**
 * Asks for a request that consists of lists of descriptors: first it peeks at the lists of cost 0, then it charges
 * all other limits or none, and it reports an outcome for each list.
 */
import type { LimitStatus, Unavailable } from '../api/answer.ts';
import type { AskAnswer } from '../api/question.ts';
import { limitStatusOf } from '../api/joint-answer.ts';
import type { ListedAnswer, ListedDone, ListedRequest, ListOutcome } from '../api/listed.ts';
import type { PeekAnswer, PeekRequest } from '../api/peek.ts';
import type { DoneWith } from '../api/user-request.ts';
import { type Asking, newAsking } from './open-request.ts';
import { limitId, type MatchedList, type MatchedLists } from './listed-limits.ts';
import type { MatchedLimit } from './matched-limit.ts';
import type { RuleSet } from './rule-set.ts';
import { type AnsweredPart, isAllowed } from './part-outcome.ts';

/** Peeks at one limit, wherever its leader is; calls `done` once. */
export type Peek = (request: PeekRequest, done: DoneWith<PeekRequest>) => void;

/** What `askListed` needs. */
export interface ListedInit {
  readonly ruleSet: () => RuleSet | 'starting' | undefined;
  readonly peek: Peek;
  /** Asks under all limits of the request and calls its `done` once. */
  readonly ask: (asking: Asking) => void;
  readonly deadlineMillis: number;
}

/** The status of one limit; looked up by `limitId`. */
interface ListedStatus {
  readonly isOver: boolean;
  readonly limitStatus?: LimitStatus;
  readonly blockedMillis?: number;
}
type PeekedLimits = ReadonlyMap<string, ListedStatus>;

/** A request of lists has no descriptors by name. */
const UNNAMED: ReadonlyMap<string, string> = new Map();
/** The rules changed between the peeks and the charge. */
const RULES_CHANGED: Unavailable = { kind: 'unavailable', reason: 'rules_changed', proposed: false };

/**
 * Asks for all lists of a request.
 *
 * @param request well-formed (`invalidInListed`)
 * @param done called once
 */
export function askListed(init: ListedInit, request: ListedRequest, done: ListedDone): void {
  const ruleSet = init.ruleSet();
  const lists = ruleSet instanceof Object ? ruleSet.listsFor(request) : undefined;
  const checks = lists?.kind === 'limits' ? lists.checks : [];
  peekAll(checks, init.peek, (peeked) => {
    if (!(peeked instanceof Map)) return done(peeked);
    if (lists?.kind === 'limits') {
      for (const limit of lists.tooExpensive) peeked.set(limitId(limit), neverFits(limit));
      if ([...peeked.values()].some(({ isOver }) => isOver))
        return done({ kind: 'listed', allowed: false, lists: outcomesOf(lists, peeked, false) });
    }
    const asked = { descriptors: UNNAMED, listed: request } as const;
    const asking = newAsking(asked, init.deadlineMillis, (answer) => done(answerOf(asking, answer, peeked)));
    init.ask(asking);
  });
}

/** Peeks at all limits. If some cannot be read, `done` gets the error of the first of them. */
function peekAll(
  checks: readonly MatchedLimit[],
  peek: Peek,
  done: (peeked: Map<string, ListedStatus> | Exclude<PeekAnswer, { kind: 'keyStatus' }>) => void,
): void {
  const peeked = new Map<string, ListedStatus>();
  let failed: Exclude<PeekAnswer, { kind: 'keyStatus' }> | undefined;
  let open = checks.length;
  if (open === 0) done(peeked);
  for (const check of checks) {
    const { userId, ruleId } = check;
    peek({ ask: 'peek', userId, ruleId }, (answer) => {
      if (answer.kind === 'keyStatus') peeked.set(limitId(check), listedStatus(answer));
      // The partition has other rules than this node. The caller may try again, by newer rules.
      else failed ??= answer.kind === 'invalid' && answer.field === 'rule' ? RULES_CHANGED : answer;
      open -= 1;
      if (open === 0) done(failed ?? peeked);
    });
  }
}

function listedStatus({ keyStatus }: Extract<PeekAnswer, { kind: 'keyStatus' }>): ListedStatus {
  const { limits, isBlocked, blockedUntilMillis, decided } = keyStatus;
  const [limit] = limits;
  if (isBlocked === true) return blockedStatus((blockedUntilMillis ?? 0) - decided.timeMillis);
  if (limit === undefined) return { isOver: true };
  return { isOver: limit.retryAfterMillis > 0, limitStatus: limit };
}

/** @param millis until the block ends; 0 or less: it has no end */
function blockedStatus(millis: number): ListedStatus {
  return { isOver: true, ...(millis > 0 && { blockedMillis: millis }) };
}

/** A cost above the limit itself fits at no time, however long the caller waits. */
function neverFits({ ruleId, window: { limit, windowMillis } }: MatchedLimit): ListedStatus {
  const times = { retryAfterMillis: windowMillis, resetMillis: windowMillis };
  return { isOver: true, limitStatus: { ruleId, limit, windowMillis, remaining: 0, ...times } };
}

function answerOf({ lists, answered }: Asking, answer: AskAnswer, peeked: PeekedLimits): ListedAnswer {
  switch (answer.kind) {
    case 'invalid':
      // The cost is above a limit, and so over it.
      if (answer.field !== 'cost' || lists === undefined) return answer;
      return {
        kind: 'listed',
        allowed: false,
        lists: outcomesOf(lists, statusOfAll(answered, peeked, false), false),
      };
    case 'conflict':
    case 'unavailable':
      return answer;
    case 'decision':
    case 'unlimited':
    case 'unmatched':
    case 'degraded': {
      // Newer rules may have added a limit that nobody has peeked at.
      if (lists === undefined || !lists.checks.every((check) => peeked.has(limitId(check))))
        return { ...RULES_CHANGED, proposed: true };
      const allowed = isAllowed(answer);
      const reported = statusOfAll(answered, peeked, allowed);
      return { kind: 'listed', allowed, lists: outcomesOf(lists, reported, allowed), decided: answer };
    }
  }
}

/**
 * @param wasGranted the whole request was granted. If not, the grants of its parts were given back, and the
 *   numbers say so.
 */
function statusOfAll(
  answered: readonly AnsweredPart[],
  peeked: PeekedLimits,
  wasGranted: boolean,
): PeekedLimits {
  return new Map([...peeked, ...answered.flatMap((part) => statusesOf(part, wasGranted))]);
}

function statusesOf({ part, answer }: AnsweredPart, wasGranted: boolean): [string, ListedStatus][] {
  if (answer?.kind === 'invalid') {
    const tooExpensive = part.limits.filter(
      ({ cost, window, settle }) => cost > window.limit && settle !== true,
    );
    return tooExpensive.map((limit) => [limitId(limit), neverFits(limit)]);
  }
  if (answer?.kind !== 'decision') return [];
  const { decision } = answer;
  const { allowed } = decision;
  if (decision.isBlocked === true)
    return part.limits.map((limit) => [limitId(limit), blockedStatus(decision.retryAfterMillis)]);
  const limitStatuses = decision.limits ?? [limitStatusOf(decision)];
  const areReported = limitStatuses.length === part.limits.length;
  return part.limits.map((limit, i) => {
    const limitStatus = areReported ? limitStatuses[i] : undefined;
    if (limitStatus === undefined) return [limitId(limit), { isOver: !allowed }];
    const isOver = !allowed && limitStatus.retryAfterMillis > 0 && limit.settle !== true;
    const isBack = allowed && !wasGranted;
    const remaining = isBack
      ? Math.min(limitStatus.limit, limitStatus.remaining + limit.cost)
      : limitStatus.remaining;
    return [limitId(limit), { isOver, limitStatus: { ...limitStatus, remaining } }];
  });
}

function outcomesOf(
  { lists }: MatchedLists,
  reported: PeekedLimits,
  allowed: boolean,
): readonly ListOutcome[] {
  const outcomes = lists.map((list) => outcomeOf(list, reported));
  if (allowed || outcomes.some(isReason)) return outcomes;
  // No list is known to be the reason: report all of them as over.
  return outcomes.map((one) => (one.kind === 'limited' ? { ...one, isOver: true } : one));
}

function isReason(outcome: ListOutcome): boolean {
  return outcome.kind === 'unmatched' || (outcome.kind === 'limited' && outcome.isOver);
}

/** A list with several windows reports the one that is over its limit, or the one with the least remaining. */
function outcomeOf(list: MatchedList, reported: PeekedLimits): ListOutcome {
  if (list.kind !== 'limited') return { kind: list.kind };
  let name = list.limits[0]?.rule.name ?? '';
  let worst: ListedStatus | undefined;
  for (const limit of list.limits) {
    const one = reported.get(limitId(limit));
    if (one === undefined || (worst !== undefined && !isWorse(one, worst))) continue;
    worst = one;
    name = limit.rule.name;
  }
  return { kind: 'limited', isOver: false, name, ...worst };
}

function isWorse(a: ListedStatus, b: ListedStatus): boolean {
  if (a.isOver !== b.isOver) return a.isOver;
  return (a.limitStatus?.remaining ?? 0) < (b.limitStatus?.remaining ?? 0);
}
