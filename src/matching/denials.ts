/**
 * Finds the denials of a request: before anything is reserved, those in the partitions that this node leads itself;
 * after a first denial, the limit with the longest wait. The answer names that limit, whichever node was asked.
 */
import type { Decision } from '../api/answer.ts';
import { jointDenial, limitsOf, limitStatusOf } from '../api/joint-answer.ts';
import type { KeyStatus } from '../api/peek.ts';
import type { MatchedRequestsInit } from './matched-requests-init.ts';
import type { Asking } from './open-request.ts';
import type { MatchedLimit } from './matched-limit.ts';
import { blockedFor } from './record-read.ts';
import type { RuleSet } from './rule-set.ts';
import { type AnsweredPart, type RefusedPart, type RequestPart, worstOf } from './part-outcome.ts';
import { guardOf, ownRequestFor } from './part-request.ts';

type Init = Pick<MatchedRequestsInit, 'ask' | 'monotonicMillis'>;

/**
 * The fraction of the remaining time that peeks may take: a denied caller should not wait for a partition without a
 * leader.
 */
const PEEK_FRACTION = 1 / 4;

/**
 * The peeked status of one part as a decision. The decision says "denied" even where all limits have room, as a
 * peek grants nothing; `isDenied` distinguishes the two.
 */
interface PeekedPart extends RefusedPart {
  readonly isDenied: boolean;
}

/** The denial to report, and all parts that it is made of, in their order. */
export interface LongestDenial {
  readonly denied: RefusedPart;
  readonly answered: readonly AnsweredPart[];
}

/** Calls `done` once, when all peeks have ended; perhaps at once. */
export type WhenPeeked = (done: (longest: LongestDenial) => void) => void;

/**
 * After a first denial, peeks at the limits that were not asked yet. A peek charges nothing and enters no log.
 * Limits that do not answer in time are left out. Returns a function that waits for the peeks.
 *
 * @param parts all parts of the request, in their order
 * @param answered the parts that were decided; at least one of them is a denial
 */
export function longestDenial(
  init: Init,
  parts: readonly RequestPart[],
  answered: readonly AnsweredPart[],
  { asking, ruleSet }: { readonly asking: Asking; readonly ruleSet: RuleSet },
): WhenPeeked {
  const denials = answered.filter(isDenial);
  const isBlocked = denials.some(({ answer }) => answer.kind === 'decision' && answer.decision.isBlocked);
  const isAnswered = (part: RequestPart): boolean => answered.some((one) => one.part === part);
  // A block takes precedence over every limit, so no peek is needed.
  const others = isBlocked ? [] : parts.filter((part) => !isAnswered(part));
  const peeked: PeekedPart[] = [];
  let open = others.length;
  let done: ((longest: LongestDenial) => void) | undefined;
  const maybeReport = (): void => {
    if (open === 0) done?.(longestOf(parts, answered, peeked));
  };
  for (const part of others)
    peekAt(init, part, { asking, ruleSet }, (one) => {
      if (one !== undefined) peeked.push(one);
      open -= 1;
      maybeReport();
    });
  return (reported) => {
    done = reported;
    maybeReport();
  };
}

function longestOf(
  parts: readonly RequestPart[],
  answered: readonly AnsweredPart[],
  peeked: readonly PeekedPart[],
): LongestDenial {
  const all = parts.flatMap((part) => [...answered, ...peeked].filter((one) => one.part === part));
  const denials = all
    .filter(isDenial)
    .filter((one) => !peeked.some((each) => each === one && !each.isDenied));
  const { part, answer } = worstOf(denials)!;
  const decisions = all.flatMap((one) => (one.answer?.kind === 'decision' ? [one.answer.decision] : []));
  if (answer.kind !== 'decision' || answer.decision.isBlocked === true || decisions.length === 1)
    return { denied: { part, answer }, answered: all };
  const decision = { ...answer.decision, limits: limitsOf(decisions) };
  return { denied: { part, answer: { ...answer, decision } }, answered: all };
}

function isDenial(one: AnsweredPart): one is RefusedPart {
  return one.answer?.kind === 'decision' && !one.answer.decision.allowed;
}

/**
 * Peeks at the limits of one part, at the cost of the request. `done` gets undefined if one of them cannot be read,
 * or has other rules.
 */
function peekAt(
  { ask, monotonicMillis }: Init,
  part: RequestPart,
  { asking, ruleSet }: { readonly asking: Asking; readonly ruleSet: RuleSet },
  done: (peeked: PeekedPart | undefined) => void,
): void {
  const { limits } = part;
  const { timestampMillis } = asking.request;
  const nowMillis = monotonicMillis();
  const untilMillis = nowMillis + (asking.deadlineMillis - nowMillis) * PEEK_FRACTION;
  peekAtLimits(
    ask,
    limits,
    { timestampMillis, rulesVersion: ruleSet.version, untilMillis },
    (limitStatuses) => done(limitStatuses && peekedPart(part, limitStatuses)),
  );
}

/**
 * Peeks at limits in any partitions, all at once. `done` gets their status, in the order of `limits`, or undefined
 * if one of them cannot be read or other rules are in force there.
 *
 * @param about `cost` that each peek asks about; absent: the cost of each limit. `untilMillis` on the monotonic
 *   clock.
 */
export function peekAtLimits(
  ask: Init['ask'],
  limits: readonly MatchedLimit[],
  about: {
    readonly cost?: number;
    readonly timestampMillis: number | undefined;
    readonly rulesVersion: number;
    readonly untilMillis: number;
  },
  done: (limitStatuses: ReadonlyMap<MatchedLimit, KeyStatus> | undefined) => void,
): void {
  const { timestampMillis, rulesVersion, untilMillis } = about;
  const limitStatuses = new Map<MatchedLimit, KeyStatus>();
  let open = limits.length;
  for (const limit of limits) {
    const { userId, ruleId, cost } = limit;
    ask(
      { ask: 'peek', userId, ruleId, cost: about.cost ?? cost, timestampMillis },
      (answer) => {
        if (answer.kind === 'keyStatus' && answer.keyStatus.rulesVersion === rulesVersion)
          limitStatuses.set(limit, answer.keyStatus);
        open -= 1;
        if (open > 0) return;
        const isWhole = limitStatuses.size === limits.length;
        done(isWhole ? new Map(limits.map((one) => [one, limitStatuses.get(one)!])) : undefined);
      },
      untilMillis,
    );
  }
}

/** The status of one part as the decision that its partition would make if it denied the request. */
function peekedPart(
  part: RequestPart,
  limitStatuses: ReadonlyMap<MatchedLimit, KeyStatus>,
): PeekedPart | undefined {
  const denials: Decision[] = [];
  const decisions: Decision[] = [];
  for (const limit of part.limits) {
    const { limits, decided, rulesVersion, isBlocked, blockedUntilMillis = 0 } = limitStatuses.get(limit)!;
    const [keyStatus] = limits;
    if (keyStatus === undefined) return undefined;
    // A settlement reports what has happened already: no limit and no block denies it.
    const denies = limit.settle !== true;
    if (denies && isBlocked === true) {
      const retryAfterMillis = Math.max(0, blockedUntilMillis - decided.timeMillis);
      return {
        part,
        answer: blockedFor(retryAfterMillis, limit.ruleId, decided, rulesVersion),
        isDenied: true,
      };
    }
    const decision = { allowed: false, ...keyStatus, decided, rulesVersion };
    decisions.push(decision);
    if (denies && keyStatus.retryAfterMillis > 0) denials.push(decision);
  }
  const [first, ...others] = decisions;
  if (first === undefined) return undefined;
  const reported = denials.length > 0 ? denials : [first];
  const decision = others.length === 0 ? first : jointDenial(reported, decisions.map(limitStatusOf));
  return { part, answer: { kind: 'decision', decision }, isDenied: denials.length > 0 };
}

type DeniedHereInit = Pick<MatchedRequestsInit, 'monotonicMillis' | 'deniedHere' | 'partitionOf'>;

/**
 * The parts of a request that this node knows to be denied, with their denials. Then no reservations are
 * made that would have to be given back.
 */
export function deniedHere(
  { monotonicMillis, deniedHere: denialOf, partitionOf }: DeniedHereInit,
  parts: readonly RequestPart[],
  asking: Asking,
  ruleSet: RuleSet,
): readonly RefusedPart[] {
  // The request has already waited past its deadline in this process.
  if (monotonicMillis() >= asking.deadlineMillis) return [];
  // The node may know an old record of the customer. Only the partition of the customer checks that, so only its
  // denial counts.
  const sure = parts.filter(
    (part) => asking.customer === undefined || guardOf(part, asking, partitionOf) !== undefined,
  );
  return sure.flatMap((part): RefusedPart[] => {
    const decision = denialOf(ownRequestFor(part, asking, ruleSet, partitionOf));
    return decision === undefined ? [] : [{ part, answer: { kind: 'decision', decision } }];
  });
}
