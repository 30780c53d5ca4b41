/**
 * Settlements: usage that a caller reports after the fact. No limit denies it, so this node asks all partitions at once, all under one
 * id, and reserves nothing. If one does not answer, the caller asks again, and a partition that has charged it repeats its answer.
 */
import type { AllowAnswer } from '../api/answer.ts';
import { isBoundedText } from '../api/bounded.ts';
import { REQUEST_ID_BYTES_MAX } from '../api/request.ts';
import { textDigest } from '../api/text-hash.ts';
import type { AskDone, Question } from '../api/question.ts';
import type { RefundQuestion, RefundQuestionDone } from '../api/refund.ts';
import type { MatchedRequestsInit } from './matched-requests-init.ts';
import type { Asking } from './open-request.ts';
import type { RuleBook } from './rule-book.ts';
import { type AnsweredShare, isAllowed, isCertain, isGrant, type Share, worstOf } from './share-outcome.ts';
import { ownRequestFor } from './share-request.ts';

/** The id of a settlement is that of its request with this behind it. */
const SETTLED = '#settled';

type Init = Pick<MatchedRequestsInit, 'ask' | 'newId' | 'partitionOf'>;

/** Told once: the answer of the first share if all charged it, else the worst of them; and what the others answered. */
type SettledDone = (answer: AllowAnswer, partition: number, others: readonly AnsweredShare[]) => void;

/** Asks all shares. There is one at least. */
export function settle(
  { ask, newId, partitionOf }: Init,
  shares: readonly [Share, ...Share[]],
  { asking, book }: { readonly asking: Asking; readonly book: RuleBook },
  done: SettledDone,
): void {
  // The rules may change before all have answered. Then all are asked again, and each must recognise what it has charged.
  if (shares.length > 1 && asking.request.requestId === undefined) asking.drawnId ??= newId();
  const answers = new Map<Share, AllowAnswer>();
  for (const share of shares) {
    ask(
      ownRequestFor(share, asking, book, partitionOf),
      (answer) => {
        answers.set(share, answer);
        if (isGrant(answer) || !isCertain(answer)) maybeCharged(asking);
        if (answers.size < shares.length) return;
        const answered = shares.map((one) => ({ share: one, answer: answers.get(one)! }));
        asking.answered = answered;
        const worst = worstOf(answered.filter((one) => !isGrant(one.answer))) ?? answered[0]!;
        done(worst.answer, worst.share.partition, answered.slice(1));
      },
      asking.deadlineMillis,
    );
  }
}

/** From now on every "unavailable" says that the request may have been charged, for whatever reason the others refuse it. */
function maybeCharged(asking: Asking): void {
  if (asking.mayHaveCharged) return;
  asking.mayHaveCharged = true;
  const { done } = asking;
  asking.done = (answer, partition) =>
    done(answer.kind === 'unavailable' ? { ...answer, proposed: true } : answer, partition);
}

/** `MatchedRequests`, as far as it is needed here. */
interface Requests {
  ask(question: Question, done: AskDone): void;
  refund(refund: RefundQuestion, done: RefundQuestionDone): void;
}

/**
 * Charges the true cost of the request with this id, once, and then refunds the estimate that the request was granted before, if it was.
 * Both steps may be repeated, so a caller that gets "unavailable" asks again. The answer tells what was left before the refund.
 *
 * @param question with an id; `done` is told once
 */
export function settleRequest(requests: Requests, question: Question, done: AskDone): void {
  const { descriptors, rule, requestId = '' } = question;
  requests.ask({ ...question, requestId: settledId(requestId) }, (answer, partition) => {
    if (!isAllowed(answer)) return done(answer, partition);
    requests.refund({ descriptors, rule, requestId }, (refunded) => {
      if (refunded.kind === 'unavailable')
        done({ kind: 'unavailable', reason: refunded.reason, proposed: true }, partition);
      else done(answer, partition);
    });
  });
}

/** The id of the settlement. That of the request stays with the grant of the estimate. */
function settledId(requestId: string): string {
  const id = `${requestId}${SETTLED}`;
  return isBoundedText(id, REQUEST_ID_BYTES_MAX) ? id : `${textDigest(requestId)}${SETTLED}`;
}
