/**
 * Settlements: costs that are told after the fact. No limit denies them, so all partitions are asked at once, each under the same id, and
 * nothing is reserved or given back. Where one does not answer the caller asks again, and those that charged it say so.
 */
import type { AllowAnswer } from '../api/answer.ts';
import { isBoundedText } from '../api/bounded.ts';
import { REQUEST_ID_BYTES_MAX } from '../api/request.ts';
import { textDigest } from '../api/text-hash.ts';
import type { AskAnswer, AskDone, Question } from '../api/question.ts';
import type { RefundQuestion, RefundQuestionAnswer, RefundQuestionDone } from '../api/refund.ts';
import type { DescribedRequestsInit } from './described-requests-init.ts';
import type { Asking } from './open-request.ts';
import type { RuleBook } from './rule-book.ts';
import {
  type AnsweredShare,
  isAllowed,
  isCertain,
  isGrant,
  type RefusedShare,
  type Share,
  wantsOtherRules,
  worstOf,
} from './share-outcome.ts';
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
        if (answers.size < shares.length) return;
        const answered = shares.map((one) => ({ share: one, answer: answers.get(one)! }));
        asking.answered = answered;
        const { answer: told, share: teller } = tellingOf(answered);
        done(told, teller.partition, answered.slice(1));
      },
      asking.deadlineMillis,
    );
  }
}

function tellingOf(answered: readonly RefusedShare[]): RefusedShare {
  const worst = worstOf(answered.filter(({ answer }) => !isGrant(answer)));
  if (worst === undefined) return answered[0]!;
  const { answer, share } = worst;
  // With another record, or other rules, all are asked again at once.
  if (answer.kind !== 'unavailable' || answer.record !== undefined || wantsOtherRules(answer)) return worst;
  const mayCount = answered.some((one) => isGrant(one.answer) || !isCertain(one.answer));
  return mayCount ? { share, answer: { ...answer, proposed: true } } : worst;
}

/** Who asks for both. */
interface Described {
  ask(question: Question, done: AskDone): void;
  refund(refund: RefundQuestion, done: RefundQuestionDone): void;
}

/**
 * Settles the request of an id. What that asked for first, as an estimate, and was granted is given back, and the true cost is charged
 * instead, once. Where it asked for nothing there is nothing to give back. Both may be repeated, so whoever hears that one of them
 * is in doubt asks for both again. The refund goes first: the answer tells what is left after it.
 *
 * @param question with an id; `done` is told once
 */
export function settleRequest(described: Described, question: Question, done: AskDone): void {
  const { descriptors, rule, requestId = '' } = question;
  let refunded: RefundQuestionAnswer | undefined;
  let told: readonly [AskAnswer, number] | undefined;
  const end = (): void => {
    if (refunded === undefined || told === undefined) return;
    const [answer, partition] = told;
    if (refunded.kind === 'unavailable' && isAllowed(answer))
      done({ kind: 'unavailable', reason: refunded.reason, proposed: true }, partition);
    else done(answer, partition);
  };
  described.refund({ descriptors, rule, requestId }, (answer) => {
    refunded = answer;
    end();
  });
  described.ask({ ...question, requestId: settledId(requestId) }, (...answer) => {
    told = answer;
    end();
  });
}

/** What a settlement is remembered by: its request's own id stays that of the grant. */
function settledId(requestId: string): string {
  const id = `${requestId}${SETTLED}`;
  return isBoundedText(id, REQUEST_ID_BYTES_MAX) ? id : `${textDigest(requestId)}${SETTLED}`;
}
