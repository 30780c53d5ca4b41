/**
 * Gives back what a request was granted whose limits rules found: all that its first partition charged, where its id is. It says
 * what stays charged elsewhere: the reservations of the attempt that was granted have ids that nobody else knows (README.md).
 */
import type { DescribedRefund, DescribedRefundDone, RefundRequest } from '../api/refund.ts';
import type { DoneWith } from '../api/user-request.ts';
import { NO_DOCUMENT, STARTING } from './refused-here.ts';
import type { RuleBook } from './rule-book.ts';
import { sharesOf } from './share-outcome.ts';

export interface DescribedRefundsInit {
  /** See `DescribedRequestsInit`. */
  readonly book: () => RuleBook | 'starting' | undefined;
  readonly partitionOf: (userId: string) => number;
  readonly ask: (request: RefundRequest, done: DoneWith<RefundRequest>, deadlineMillis: number) => void;
  readonly doorMillis: () => number;
  readonly deadlineMillis: number;
}

export function refundDescribed(
  { book: bookOf, partitionOf, ask, doorMillis, deadlineMillis }: DescribedRefundsInit,
  { descriptors, requestId }: DescribedRefund,
  done: DescribedRefundDone,
): void {
  const book = bookOf();
  if (book === 'starting') return done(STARTING, 0);
  if (book === undefined) return done(NO_DOCUMENT, 0);
  const matched = book.limitsFor({ descriptors });
  if (matched.kind === 'invalid') return done(matched, 0);
  const [first, ...others] = sharesOf(matched.enforced, partitionOf);
  if (first === undefined) return done({ kind: 'unlimited', rulesVersion: book.version }, 0);
  const [{ userId }] = first.limits;
  ask(
    { ask: 'refund', userId, requestId },
    (answer, partition) => {
      if (answer.kind !== 'refund') return done(answer, partition);
      const { refunded, rulesVersion } = answer.refund;
      const kept = others
        .flatMap(({ limits }) => limits)
        .map((limit) => ({ ruleId: limit.ruleId, userId: limit.userId }));
      // Other rules may have found other limits, in other partitions.
      const isKnown = rulesVersion === book.version;
      done({ ...answer, kept: refunded ? (isKnown ? kept : undefined) : [] }, partition);
    },
    doorMillis() + deadlineMillis,
  );
}
