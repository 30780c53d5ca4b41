/**
 * Asks for a request that consists of lists of descriptors: first it peeks at the lists of cost 0, then it charges
 * all other limits or none, and it reports an outcome for each list.
 */
import type { LimitStanding, Unavailable } from '../api/answer.ts';
import type { AskAnswer } from '../api/question.ts';
import { standingOf } from '../api/joint-answer.ts';
import type { ListedAnswer, ListedDone, ListedRequest, ListOutcome } from '../api/listed.ts';
import type { LookAnswer, LookRequest } from '../api/look.ts';
import type { DoneWith } from '../api/user-request.ts';
import { type Asking, newAsking } from './open-request.ts';
import { limitId, type MatchedList, type MatchedLists } from './listed-limits.ts';
import type { MatchedLimit } from './matched-limit.ts';
import type { RuleBook } from './rule-book.ts';
import { type AnsweredShare, isAllowed } from './share-outcome.ts';

/** Peeks at one limit, wherever its leader is; calls `done` once. */
export type Look = (request: LookRequest, done: DoneWith<LookRequest>) => void;

/** What `askListed` needs. */
export interface ListedInit {
  readonly book: () => RuleBook | 'starting' | undefined;
  readonly look: Look;
  /** Asks under all limits of the request and calls its `done` once. */
  readonly ask: (asking: Asking) => void;
  readonly deadlineMillis: number;
}

/** The status of one limit; looked up by `limitId`. */
interface Told {
  readonly isOver: boolean;
  readonly standing?: LimitStanding;
  readonly blockedMillis?: number;
}
type AllTold = ReadonlyMap<string, Told>;

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
  const book = init.book();
  const lists = book instanceof Object ? book.listsFor(request) : undefined;
  const checks = lists?.kind === 'limits' ? lists.checks : [];
  lookAll(checks, init.look, (looked) => {
    if (!(looked instanceof Map)) return done(looked);
    if (lists?.kind === 'limits') {
      for (const limit of lists.tooDear) looked.set(limitId(limit), neverFits(limit));
      if ([...looked.values()].some(({ isOver }) => isOver))
        return done({ kind: 'listed', allowed: false, lists: outcomesOf(lists, looked, false) });
    }
    const asked = { descriptors: UNNAMED, listed: request } as const;
    const asking = newAsking(asked, init.deadlineMillis, (answer) => done(answerOf(asking, answer, looked)));
    init.ask(asking);
  });
}

/** Peeks at all limits. If some cannot be read, `done` gets the error of the first of them. */
function lookAll(
  checks: readonly MatchedLimit[],
  look: Look,
  done: (looked: Map<string, Told> | Exclude<LookAnswer, { kind: 'standing' }>) => void,
): void {
  const looked = new Map<string, Told>();
  let failed: Exclude<LookAnswer, { kind: 'standing' }> | undefined;
  let open = checks.length;
  if (open === 0) done(looked);
  for (const check of checks) {
    const { userId, ruleId } = check;
    look({ ask: 'look', userId, ruleId }, (answer) => {
      if (answer.kind === 'standing') looked.set(limitId(check), toldBy(answer));
      // The partition has other rules than this node. The caller may try again, by newer rules.
      else failed ??= answer.kind === 'invalid' && answer.field === 'rule' ? RULES_CHANGED : answer;
      open -= 1;
      if (open === 0) done(failed ?? looked);
    });
  }
}

function toldBy({ standing }: Extract<LookAnswer, { kind: 'standing' }>): Told {
  const { limits, isBlocked, blockedUntilMillis, decided } = standing;
  const [limit] = limits;
  if (isBlocked === true) return toldOfBlock((blockedUntilMillis ?? 0) - decided.timeMillis);
  if (limit === undefined) return { isOver: true };
  return { isOver: limit.retryAfterMillis > 0, standing: limit };
}

/** @param millis until the block ends; 0 or less: it has no end */
function toldOfBlock(millis: number): Told {
  return { isOver: true, ...(millis > 0 && { blockedMillis: millis }) };
}

/** A cost above the limit itself fits at no time, however long the caller waits. */
function neverFits({ ruleId, window: { limit, windowMillis } }: MatchedLimit): Told {
  const times = { retryAfterMillis: windowMillis, resetMillis: windowMillis };
  return { isOver: true, standing: { ruleId, limit, windowMillis, remaining: 0, ...times } };
}

function answerOf({ lists, answered }: Asking, answer: AskAnswer, looked: AllTold): ListedAnswer {
  switch (answer.kind) {
    case 'invalid':
      // The cost is above a limit, and so over it.
      if (answer.field !== 'cost' || lists === undefined) return answer;
      return {
        kind: 'listed',
        allowed: false,
        lists: outcomesOf(lists, toldOfAll(answered, looked, false), false),
      };
    case 'conflict':
    case 'unavailable':
      return answer;
    case 'decision':
    case 'unlimited':
    case 'unmatched':
    case 'degraded': {
      // Newer rules may have added a limit that nobody has peeked at.
      if (lists === undefined || !lists.checks.every((check) => looked.has(limitId(check))))
        return { ...RULES_CHANGED, proposed: true };
      const allowed = isAllowed(answer);
      const told = toldOfAll(answered, looked, allowed);
      return { kind: 'listed', allowed, lists: outcomesOf(lists, told, allowed), decided: answer };
    }
  }
}

/**
 * @param wasGranted the whole request was granted. If not, what a part granted was given back, and the numbers say
 *   so.
 */
function toldOfAll(answered: readonly AnsweredShare[], looked: AllTold, wasGranted: boolean): AllTold {
  return new Map([...looked, ...answered.flatMap((share) => toldOf(share, wasGranted))]);
}

function toldOf({ share, answer }: AnsweredShare, wasGranted: boolean): [string, Told][] {
  if (answer?.kind === 'invalid') {
    const tooDear = share.limits.filter(({ cost, window, settle }) => cost > window.limit && settle !== true);
    return tooDear.map((limit) => [limitId(limit), neverFits(limit)]);
  }
  if (answer?.kind !== 'decision') return [];
  const { decision } = answer;
  const { allowed } = decision;
  if (decision.isBlocked === true)
    return share.limits.map((limit) => [limitId(limit), toldOfBlock(decision.retryAfterMillis)]);
  const standings = decision.limits ?? [standingOf(decision)];
  const areTold = standings.length === share.limits.length;
  return share.limits.map((limit, i) => {
    const standing = areTold ? standings[i] : undefined;
    if (standing === undefined) return [limitId(limit), { isOver: !allowed }];
    const isOver = !allowed && standing.retryAfterMillis > 0 && limit.settle !== true;
    const isBack = allowed && !wasGranted;
    const remaining = isBack ? Math.min(standing.limit, standing.remaining + limit.cost) : standing.remaining;
    return [limitId(limit), { isOver, standing: { ...standing, remaining } }];
  });
}

function outcomesOf({ lists }: MatchedLists, told: AllTold, allowed: boolean): readonly ListOutcome[] {
  const outcomes = lists.map((list) => outcomeOf(list, told));
  if (allowed || outcomes.some(isReason)) return outcomes;
  // No list is known to be the reason: report all of them as over.
  return outcomes.map((one) => (one.kind === 'limited' ? { ...one, isOver: true } : one));
}

function isReason(outcome: ListOutcome): boolean {
  return outcome.kind === 'unmatched' || (outcome.kind === 'limited' && outcome.isOver);
}

/** A list with several windows reports the one that is over its limit, or the one with the least remaining. */
function outcomeOf(list: MatchedList, told: AllTold): ListOutcome {
  if (list.kind !== 'limited') return { kind: list.kind };
  let name = list.limits[0]?.rule.name ?? '';
  let worst: Told | undefined;
  for (const limit of list.limits) {
    const one = told.get(limitId(limit));
    if (one === undefined || (worst !== undefined && !isWorse(one, worst))) continue;
    worst = one;
    name = limit.rule.name;
  }
  return { kind: 'limited', isOver: false, name, ...worst };
}

function isWorse(a: Told, b: Told): boolean {
  if (a.isOver !== b.isOver) return a.isOver;
  return (a.standing?.remaining ?? 0) < (b.standing?.remaining ?? 0);
}
