/**
 * Settlements: costs that are told after the fact. No limit denies them, so all partitions are asked at once, each under the same id, and
 * nothing is reserved or given back. Where one does not answer the caller asks again, and those that charged it say so.
 */
import type { AllowAnswer } from '../api/answer.ts';
import { isBoundedText } from '../api/bounded.ts';
import { REQUEST_ID_BYTES_MAX } from '../api/request.ts';
import { textDigest } from '../api/text-hash.ts';
import type { AskDone, Question } from '../api/question.ts';
import type { RefundQuestion, RefundQuestionDone } from '../api/refund.ts';
import type { DescribedRequestsInit } from './described-requests-init.ts';
import type { Asking } from './open-request.ts';
import type { RuleBook } from './rule-book.ts';
import { type AnsweredShare, isAllowed, isCertain, isGrant, type Share, worstOf } from './share-outcome.ts';
import { ownRequestFor } from './share-request.ts';

/** Behind the id of a request: what is remembered of its settlement. */
const SETTLED = '#settled';

type Init = Pick<DescribedRequestsInit, 'ask' | 'newId' | 'partitionOf'>;

/** Told once: the answer of the first share if all charged it, else the worst of them; and what the others answered. */
type SettledDone = (answer: AllowAnswer, partition: number, others: readonly AnsweredShare[]) => void;

/** Asks all shares. There is one at least. */
export function settle(
  { ask, newId, partitionOf }: Init,
  shares: readonly [Share, ...Share[]],
  { asking, book }: { readonly asking: Asking; readonly book: RuleBook },
  done: SettledDone,
): void {
  // Before all have answered there may be other rules. Then all are asked again, and must know what they charged.
  if (shares.length > 1) asking.settlementId ??= asking.request.requestId ?? newId();
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

/** Whatever keeps the others from it later, nobody is told that nothing was charged. */
function maybeCharged(asking: Asking): void {
  if (asking.mayHaveCharged) return;
  asking.mayHaveCharged = true;
  const { done } = asking;
  asking.done = (answer, partition) =>
    done(answer.kind === 'unavailable' ? { ...answer, proposed: true } : answer, partition);
}

/** Who asks for both. */
interface Described {
  ask(question: Question, done: AskDone): void;
  refund(refund: RefundQuestion, done: RefundQuestionDone): void;
}

/**
 * Settles the request of an id: its true cost is charged, once. Then what it asked for first, as an estimate, and was granted is given
 * back; where it asked for nothing that changes nothing. Both may be repeated, so whoever hears that one of them is in doubt asks for both
 * again. The answer tells what is left before anything is given back.
 *
 * @param question with an id; `done` is told once
 */
export function settleRequest(described: Described, question: Question, done: AskDone): void {
  const { descriptors, rule, requestId = '' } = question;
  described.ask({ ...question, requestId: settledId(requestId) }, (answer, partition) => {
    if (!isAllowed(answer)) return done(answer, partition);
    described.refund({ descriptors, rule, requestId }, (refunded) => {
      if (refunded.kind === 'unavailable')
        done({ kind: 'unavailable', reason: refunded.reason, proposed: true }, partition);
      else done(answer, partition);
    });
  });
}

/** What a settlement is remembered by: its request's own id stays that of the grant. */
function settledId(requestId: string): string {
  const id = `${requestId}${SETTLED}`;
  return isBoundedText(id, REQUEST_ID_BYTES_MAX) ? id : `${textDigest(requestId)}${SETTLED}`;
}
