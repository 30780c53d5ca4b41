/**
 * A request of lists of descriptors: what is only looked at is looked at first, what is charged is charged under all limits or
 * under none, and each list is told what became of it. It keeps nothing.
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

/** Asks whoever leads; `done` is told once. */
export type Look = (request: LookRequest, done: DoneWith<LookRequest>) => void;

export interface ListedInit {
  readonly book: () => RuleBook | 'starting' | undefined;
  readonly look: Look;
  /** Asks under all limits of the request, and tells its `done` once. */
  readonly ask: (asking: Asking) => void;
  readonly deadlineMillis: number;
}

/** How one limit stands, by `limitId`. */
interface Told {
  readonly isOver: boolean;
  readonly standing?: LimitStanding;
  readonly blockedMillis?: number;
}
type AllTold = ReadonlyMap<string, Told>;

/** No descriptor has a name of its own. */
const UNNAMED: ReadonlyMap<string, string> = new Map();
/** Between looking and asking there were other rules. */
const RULES_CHANGED: Unavailable = { kind: 'unavailable', reason: 'rules_changed', proposed: false };

/** @param request well-formed, see `invalidInListed`; `done` is told once */
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

/** Of the first that nobody could look at: why. */
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
      // The rules that this node knows may be of before: who asks again finds others.
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

/** @param millis until the block ends; not above 0: it has no end */
function toldOfBlock(millis: number): Told {
  return { isOver: true, ...(millis > 0 && { blockedMillis: millis }) };
}

/** Of a cost above the limit: no wait helps. */
function neverFits({ ruleId, window: { limit, windowMillis } }: MatchedLimit): Told {
  const times = { retryAfterMillis: windowMillis, resetMillis: windowMillis };
  return { isOver: true, standing: { ruleId, limit, windowMillis, remaining: 0, ...times } };
}

function answerOf({ lists, answered }: Asking, answer: AskAnswer, looked: AllTold): ListedAnswer {
  switch (answer.kind) {
    case 'invalid':
      // A limit is smaller than what was asked for: over it, as all that does not fit.
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
      // A rule may have come that nobody looked at.
      if (lists === undefined || !lists.checks.every((check) => looked.has(limitId(check))))
        return { ...RULES_CHANGED, proposed: true };
      const allowed = isAllowed(answer);
      const told = toldOfAll(answered, looked, allowed);
      return { kind: 'listed', allowed, lists: outcomesOf(lists, told, allowed), decided: answer };
    }
  }
}

/** @param wasGranted the whole request: else what a share granted was given back */
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
  // Nobody knows which: then all of them are.
  return outcomes.map((one) => (one.kind === 'limited' ? { ...one, isOver: true } : one));
}

function isReason(outcome: ListOutcome): boolean {
  return outcome.kind === 'unmatched' || (outcome.kind === 'limited' && outcome.isOver);
}

/** Of several windows the one that is over, or has least remaining. */
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
