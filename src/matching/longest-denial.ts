/**
 * After a first denial, peeks at the limits that were not asked yet, so that the answer names the limit with the
 * longest wait, whichever node was asked. A peek charges nothing and enters no log. Limits that do not answer in
 * time are left out.
 */
import type { Decision } from '../api/answer.ts';
import { jointDenial, limitsOf, standingOf } from '../api/joint-answer.ts';
import type { Standing } from '../api/look.ts';
import type { MatchedRequestsInit } from './matched-requests-init.ts';
import type { MatchedLimit } from './matched-limit.ts';
import type { Asking } from './open-request.ts';
import { blockedFor } from './record-read.ts';
import type { RuleBook } from './rule-book.ts';
import { type AnsweredShare, type RefusedShare, type Share, worstOf } from './share-outcome.ts';

type Init = Pick<MatchedRequestsInit, 'ask' | 'monotonicMillis'>;

/**
 * The part of the remaining time that peeks may take: a denied caller should not wait for a partition without a
 * leader.
 */
const LOOKING_PART = 1 / 4;

/**
 * The peeked status of one part as a decision. The decision says "denied" even where all limits have room, as a
 * peek grants nothing; `isDenied` tells them apart.
 */
interface LookedShare extends RefusedShare {
  readonly isDenied: boolean;
}

/** The denial to report, and all parts that it is made of, in their order. */
export interface LongestDenial {
  readonly denied: RefusedShare;
  readonly answered: readonly AnsweredShare[];
}

/** Calls `done` once, when all peeks have ended; perhaps at once. */
export type WhenLooked = (done: (longest: LongestDenial) => void) => void;

/**
 * Starts the peeks and returns a function that waits for them.
 *
 * @param shares all parts of the request, in their order
 * @param answered the parts that were decided; at least one of them is a denial
 */
export function longestDenial(
  init: Init,
  shares: readonly Share[],
  answered: readonly AnsweredShare[],
  { asking, book }: { readonly asking: Asking; readonly book: RuleBook },
): WhenLooked {
  const denials = answered.filter(isDenial);
  const isBlocked = denials.some(({ answer }) => answer.kind === 'decision' && answer.decision.isBlocked);
  const isAnswered = (share: Share): boolean => answered.some((one) => one.share === share);
  // A block takes precedence over every limit, so no peek is needed.
  const others = isBlocked ? [] : shares.filter((share) => !isAnswered(share));
  const looked: LookedShare[] = [];
  let open = others.length;
  let done: ((longest: LongestDenial) => void) | undefined;
  const maybeTell = (): void => {
    if (open === 0) done?.(longestOf(shares, answered, looked));
  };
  for (const share of others)
    lookAt(init, share, { asking, book }, (one) => {
      if (one !== undefined) looked.push(one);
      open -= 1;
      maybeTell();
    });
  return (told) => {
    done = told;
    maybeTell();
  };
}

function longestOf(
  shares: readonly Share[],
  answered: readonly AnsweredShare[],
  looked: readonly LookedShare[],
): LongestDenial {
  const all = shares.flatMap((share) => [...answered, ...looked].filter((one) => one.share === share));
  const denials = all
    .filter(isDenial)
    .filter((one) => !looked.some((each) => each === one && !each.isDenied));
  const { share, answer } = worstOf(denials)!;
  const decisions = all.flatMap((one) => (one.answer?.kind === 'decision' ? [one.answer.decision] : []));
  if (answer.kind !== 'decision' || answer.decision.isBlocked === true || decisions.length === 1)
    return { denied: { share, answer }, answered: all };
  const decision = { ...answer.decision, limits: limitsOf(decisions) };
  return { denied: { share, answer: { ...answer, decision } }, answered: all };
}

function isDenial(one: AnsweredShare): one is RefusedShare {
  return one.answer?.kind === 'decision' && !one.answer.decision.allowed;
}

/**
 * Peeks at the limits of one part, at the cost of the request. `done` gets undefined if one of them cannot be read,
 * or has other rules.
 */
function lookAt(
  { ask, monotonicMillis }: Init,
  share: Share,
  { asking, book }: { readonly asking: Asking; readonly book: RuleBook },
  done: (looked: LookedShare | undefined) => void,
): void {
  const { limits } = share;
  const { timestampMillis } = asking.request;
  const nowMillis = monotonicMillis();
  const untilMillis = nowMillis + (asking.deadlineMillis - nowMillis) * LOOKING_PART;
  lookAtLimits(ask, limits, { timestampMillis, rulesVersion: book.version, untilMillis }, (standings) =>
    done(standings && lookedShare(share, standings)),
  );
}

/**
 * Peeks at limits in any partitions, all at once. `done` gets their status, in the order of `limits`, or undefined
 * if one of them cannot be read or other rules are in force there.
 *
 * @param about `cost` that each peek asks about; absent: the cost of each limit. `untilMillis` on the monotonic
 *   clock.
 */
export function lookAtLimits(
  ask: Init['ask'],
  limits: readonly MatchedLimit[],
  about: {
    readonly cost?: number;
    readonly timestampMillis: number | undefined;
    readonly rulesVersion: number;
    readonly untilMillis: number;
  },
  done: (standings: ReadonlyMap<MatchedLimit, Standing> | undefined) => void,
): void {
  const { timestampMillis, rulesVersion, untilMillis } = about;
  const standings = new Map<MatchedLimit, Standing>();
  let open = limits.length;
  for (const limit of limits) {
    const { userId, ruleId, cost } = limit;
    ask(
      { ask: 'look', userId, ruleId, cost: about.cost ?? cost, timestampMillis },
      (answer) => {
        if (answer.kind === 'standing' && answer.standing.rulesVersion === rulesVersion)
          standings.set(limit, answer.standing);
        open -= 1;
        if (open > 0) return;
        const isWhole = standings.size === limits.length;
        done(isWhole ? new Map(limits.map((one) => [one, standings.get(one)!])) : undefined);
      },
      untilMillis,
    );
  }
}

/** The status of one part as the decision that its partition would make if it denied the request. */
function lookedShare(share: Share, standings: ReadonlyMap<MatchedLimit, Standing>): LookedShare | undefined {
  const denials: Decision[] = [];
  const decisions: Decision[] = [];
  for (const limit of share.limits) {
    const { limits, decided, rulesVersion, isBlocked, blockedUntilMillis = 0 } = standings.get(limit)!;
    const [standing] = limits;
    if (standing === undefined) return undefined;
    // A settlement reports what has happened already: no limit and no block denies it.
    const denies = limit.settle !== true;
    if (denies && isBlocked === true) {
      const retryAfterMillis = Math.max(0, blockedUntilMillis - decided.timeMillis);
      return {
        share,
        answer: blockedFor(retryAfterMillis, limit.ruleId, decided, rulesVersion),
        isDenied: true,
      };
    }
    const decision = { allowed: false, ...standing, decided, rulesVersion };
    decisions.push(decision);
    if (denies && standing.retryAfterMillis > 0) denials.push(decision);
  }
  const [first, ...others] = decisions;
  if (first === undefined) return undefined;
  const told = denials.length > 0 ? denials : [first];
  const decision = others.length === 0 ? first : jointDenial(told, decisions.map(standingOf));
  return { share, answer: { kind: 'decision', decision }, isDenied: denials.length > 0 };
}
