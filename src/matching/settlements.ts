/**
 * Settlements: costs that are told after the fact. No limit denies them, so all partitions are asked at once, each under the same id, and
 * nothing is reserved or given back. Where one does not answer the caller asks again, and those that charged it say so.
 */
import type { AllowAnswer } from '../api/answer.ts';
import type { DescribedRequestsInit } from './described-requests-init.ts';
import type { Asking } from './open-request.ts';
import type { RuleBook } from './rule-book.ts';
import {
  type AnsweredShare,
  isCertain,
  isGrant,
  type RefusedShare,
  type Share,
  wantsOtherRules,
  worstOf,
} from './share-outcome.ts';
import { ownRequestFor } from './share-request.ts';

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
