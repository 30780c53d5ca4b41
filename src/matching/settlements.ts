/**
 * Settlements: usage that a caller reports after the fact. No limit denies it. So this node asks all partitions at
 * once, under one id, and reserves nothing. If one does not answer, the caller asks again, and a partition that has
 * charged it already repeats its answer.
 */
import type { AllowAnswer } from '../api/answer.ts';
import { isBoundedText } from '../api/bounded.ts';
import { REQUEST_ID_BYTES_MAX } from '../api/request.ts';
import { jointGrant } from '../api/joint-answer.ts';
import type { KeyStatus } from '../api/peek.ts';
import { textDigest } from '../api/text-hash.ts';
import type { AskAnswer, AskDone, Question } from '../api/question.ts';
import type { RefundQuestion, RefundQuestionDone } from '../api/refund.ts';
import type { MatchedRequestsInit } from './matched-requests-init.ts';
import type { Asking } from './open-request.ts';
import { asOf, type CustomerCache } from './customer-cache.ts';
import { peekAtLimits } from './denials.ts';
import type { MatchedLimit } from './matched-limit.ts';
import { attemptId } from './reservations.ts';
import type { RuleSet } from './rule-set.ts';
import {
  type AnsweredPart,
  isAllowed,
  isCertain,
  isGrant,
  type RequestPart,
  partsOfRequest,
  worstOf,
} from './part-outcome.ts';
import { ownRequestFor } from './part-request.ts';

/** The id of a settlement is the id of its request with this suffix. */
const SETTLED = '#settled';

type Init = Pick<MatchedRequestsInit, 'ask' | 'newAttempt' | 'partitionOf'>;

/**
 * Called once with the answer of the first part if all charged it, else with the worst refusal; `others`: the other
 * parts with their answers.
 */
type SettledDone = (answer: AllowAnswer, partition: number, others: readonly AnsweredPart[]) => void;

/** Charges all parts of a settlement. */
export function settle(
  { ask, newAttempt, partitionOf }: Init,
  parts: readonly [RequestPart, ...RequestPart[]],
  { asking, ruleSet }: { readonly asking: Asking; readonly ruleSet: RuleSet },
  done: SettledDone,
): void {
  // If the rules change before all have answered, all are asked again. The id lets each recognise what it has
  // charged.
  if (parts.length > 1 && asking.request.requestId === undefined) asking.drawnId ??= attemptId(newAttempt());
  const answers = new Map<RequestPart, AllowAnswer>();
  for (const part of parts) {
    ask(
      ownRequestFor(part, asking, ruleSet, partitionOf),
      (answer) => {
        answers.set(part, answer);
        if (isGrant(answer) || !isCertain(answer)) maybeCharged(asking);
        if (answers.size < parts.length) return;
        const answered = parts.map((one) => ({ part: one, answer: answers.get(one)! }));
        asking.answered = answered;
        const worst = worstOf(answered.filter((one) => !isGrant(one.answer))) ?? answered[0]!;
        done(worst.answer, worst.part.partition, answered.slice(1));
      },
      asking.deadlineMillis,
    );
  }
}

/** From now on every "unavailable" of this request says that it may have been charged, for every reason. */
function maybeCharged(asking: Asking): void {
  if (asking.mayHaveCharged) return;
  asking.mayHaveCharged = true;
  const { done } = asking;
  asking.done = (answer, partition) =>
    done(answer.kind === 'unavailable' ? { ...answer, proposed: true } : answer, partition);
}

/** The methods of `MatchedRequests` that `settleRequest` needs. */
interface Requests {
  ask(question: Question, done: AskDone): void;
  refund(refund: RefundQuestion, done: RefundQuestionDone): void;
  leftNow(question: Question, settled: AskAnswer, done: (answer: AskAnswer) => void): void;
}

/**
 * Settles a request with an id: charges the true cost once, then refunds the estimate that was granted under the
 * same id, if any. Both steps can be repeated, so a caller that gets "unavailable" asks again. The answer says what
 * is left after both steps, or after the first if the limits cannot be read in time.
 *
 * @param question with an id
 * @param done called once
 */
export function settleRequest(requests: Requests, question: Question, done: AskDone): void {
  const { descriptors, rule, requestId = '' } = question;
  requests.ask({ ...question, requestId: settledId(requestId) }, (answer, partition) => {
    if (!isAllowed(answer)) return done(answer, partition);
    requests.refund({ descriptors, rule, requestId }, (refunded) => {
      if (refunded.kind === 'unavailable')
        done({ kind: 'unavailable', reason: refunded.reason, proposed: true }, partition);
      else if (refunded.kind !== 'refund' || !refunded.refund.refunded) done(answer, partition);
      else if (refunded.kept !== undefined && refunded.kept.length > 0)
        done({ kind: 'unavailable', reason: 'deadline', proposed: true }, partition);
      else requests.leftNow(question, answer, (left) => done(left, partition));
    });
  });
}

/**
 * Adds to the answer of a settlement what its limits have left after the refund. The answer is unchanged if the
 * limits cannot be read in time or the rules have changed.
 */
export function leftNow(
  init: Pick<MatchedRequestsInit, 'ruleSet' | 'ask' | 'partitionOf' | 'listenerMillis' | 'deadlineMillis'>,
  cache: CustomerCache,
  { question, settled }: { readonly question: Question; readonly settled: AskAnswer },
  done: (answer: AskAnswer) => void,
): void {
  const ruleSet = init.ruleSet();
  if (settled.kind !== 'decision' || ruleSet === 'starting') return done(settled);
  const { version: rulesVersion } = ruleSet;
  const matched = ruleSet.limitsFor(asOf(question, cache.of(question)));
  const isSame = matched.kind === 'limits' && rulesVersion === settled.decision.rulesVersion;
  if (!isSame || matched.enforced.length === 0) return done(settled);
  const { timestampMillis } = question;
  const untilMillis = init.listenerMillis() + init.deadlineMillis;
  const limitsInOrder = partsOfRequest(matched.enforced, init.partitionOf).flatMap(({ limits }) => limits);
  peekAtLimits(init.ask, limitsInOrder, { cost: 1, timestampMillis, rulesVersion, untilMillis }, (limits) =>
    done(limits === undefined ? settled : withLeft(settled, limits)),
  );
}

/** @param limits of the request, by the rules that charged it */
function withLeft(
  settled: Extract<AskAnswer, { kind: 'decision' }>,
  limits: ReadonlyMap<MatchedLimit, KeyStatus>,
): AskAnswer {
  const { decided, rulesVersion } = settled.decision;
  const grants = [...limits.values()].flatMap((one) =>
    one.limits.map((limit) => ({ allowed: true, ...limit, decided, rulesVersion })),
  );
  const [only, ...others] = grants;
  const decision = only !== undefined && others.length === 0 ? only : jointGrant(grants);
  const key = [...limits.keys()].find(({ ruleId }) => ruleId === decision.ruleId)?.userId;
  return { ...settled, decision, ...(key !== undefined && { key }) };
}

/** The id of the settlement. The id of the request stays with the grant of the estimate. */
function settledId(requestId: string): string {
  const id = `${requestId}${SETTLED}`;
  return isBoundedText(id, REQUEST_ID_BYTES_MAX) ? id : `${textDigest(requestId)}${SETTLED}`;
}
