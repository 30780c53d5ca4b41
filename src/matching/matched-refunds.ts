/**
 * Gives back what a request was granted whose limits rules found: all that its first partition charged, where its id is. It says
 * what stays charged elsewhere: the reservations of the attempt that was granted have ids that nobody else knows (README.md). Of
 * a customer the record is read first: which partition was the first one follows from that.
 */
import type { CustomerRequest } from '../api/customer.ts';
import type { RefundQuestion, RefundQuestionDone, RefundRequest } from '../api/refund.ts';
import type { DoneWith } from '../api/user-request.ts';
import { asOf, type CustomerCache, type KnownCustomer } from './customer-cache.ts';
import { ownFirst, readOf } from './record-read.ts';
import { STARTING } from './node-refusals.ts';
import type { RuleBook } from './rule-book.ts';
import { sharesOf } from './share-outcome.ts';

export interface MatchedRefundsInit {
  /** See `MatchedRequestsInit`. */
  readonly book: () => RuleBook | 'starting';
  readonly partitionOf: (userId: string) => number;
  readonly ask: <R extends CustomerRequest | RefundRequest>(
    request: R,
    done: DoneWith<R>,
    deadlineMillis: number,
  ) => void;
  readonly doorMillis: () => number;
  readonly deadlineMillis: number;
}

interface Refunding {
  readonly refund: RefundQuestion;
  readonly book: RuleBook;
  readonly customer: KnownCustomer | undefined;
  readonly untilMillis: number;
}

/** @param cache of this node, which learns what is read */
export function refundRequest(
  init: MatchedRefundsInit,
  cache: CustomerCache,
  refund: RefundQuestion,
  done: RefundQuestionDone,
): void {
  const { book: bookOf, ask, doorMillis, deadlineMillis } = init;
  const book = bookOf();
  if (book === 'starting') return done(STARTING, 0);
  const untilMillis = doorMillis() + deadlineMillis;
  const customer = cache.of(refund);
  if (customer === undefined) return refundAs(init, { refund, book, customer, untilMillis }, done);
  ask(
    readOf(customer),
    (answer, partition) => {
      if (answer.kind !== 'customer') return done(answer, partition);
      cache.learn(customer.key, answer.outcome.record);
      const known = cache.of(refund);
      refundAs(init, { refund, book, customer: known, untilMillis }, done);
    },
    untilMillis,
  );
}

function refundAs(
  { partitionOf, ask }: MatchedRefundsInit,
  { refund, book, customer, untilMillis }: Refunding,
  done: RefundQuestionDone,
): void {
  const matched = book.limitsFor(asOf(refund, customer));
  if (matched.kind === 'invalid') return done(matched, 0);
  const shares = sharesOf(matched.enforced, partitionOf);
  const [first, ...others] =
    customer === undefined ? shares : ownFirst(shares, customer, partitionOf(customer.key));
  if (first === undefined) return done({ kind: 'unlimited', rulesVersion: book.version }, 0);
  const [{ userId }] = first.limits;
  ask(
    { ask: 'refund', userId, requestId: refund.requestId },
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
    untilMillis,
  );
}
