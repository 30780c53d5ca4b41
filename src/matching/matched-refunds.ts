/**
 * Gives back what a request was granted whose limits rules found: first what its first partition charged, where its id is; then what
 * the attempt that was granted reserved in others, under the number that the first partition remembers of it (README.md). It says what
 * stays charged. The record of a customer is read first: which partition was the first one follows from that.
 */
import type { CustomerRequest } from '../api/customer.ts';
import type {
  KeptLimit,
  RefundAnswer,
  RefundQuestion,
  RefundQuestionDone,
  RefundRequest,
} from '../api/refund.ts';
import type { DoneWith } from '../api/user-request.ts';
import { earlierKeepers } from './earlier-books.ts';
import { asOf, type CustomerCache, type KnownCustomer } from './customer-cache.ts';
import { ownFirst, readOf } from './record-read.ts';
import type { MatchedLimit } from './matched-limit.ts';
import { STARTING } from './node-refusals.ts';
import { reservationId } from './reservations.ts';
import type { RuleBook } from './rule-book.ts';
import { type Share, sharesOf } from './share-outcome.ts';

export interface MatchedRefundsInit {
  /** See `MatchedRequestsInit`. */
  readonly book: () => RuleBook | 'starting';
  readonly earlier: () => readonly RuleBook[];
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
  { earlier, partitionOf, ask }: MatchedRefundsInit,
  { refund, book, customer, untilMillis }: Refunding,
  done: RefundQuestionDone,
): void {
  const matched = book.limitsFor(asOf(refund, customer));
  if (matched.kind === 'invalid') return done(matched, 0);
  const shares = sharesOf(matched.enforced, partitionOf);
  const [first, ...others] =
    customer === undefined ? shares : ownFirst(shares, customer, partitionOf(customer.key));
  const nowKept = first?.limits[0].userId;
  const before = earlierKeepers(earlier(), { request: refund, customer }, nowKept, partitionOf);
  const keys = [
    ...(nowKept === undefined ? [] : [nowKept]),
    ...before.map(([{ limits }]) => limits[0].userId),
  ];
  const refundAt = (place: number): void => {
    const userId = keys[place];
    if (userId === undefined) return done({ kind: 'unlimited', rulesVersion: book.version }, 0);
    ask(
      { ask: 'refund', userId, requestId: refund.requestId },
      (answer, partition) => {
        if (answer.kind !== 'refund') return done(answer, partition);
        const { refunded, rulesVersion, attempt } = answer.refund;
        const tell = (kept: readonly KeptLimit[] | undefined): void => done({ ...answer, kept }, partition);
        // Earlier rules may have led the request elsewhere.
        if (!refunded && place + 1 < keys.length) refundAt(place + 1);
        else if (!refunded || attempt === undefined) tell([]);
        // Other rules, or another tier, may have found other limits, in other partitions.
        else if (rulesVersion !== book.version || others.length === 0) tell(undefined);
        else refundOthers(ask, others, { attempt, untilMillis }, tell);
      },
      untilMillis,
    );
  };
  refundAt(0);
}

/** Tells `done` which limits stay charged because nobody could be asked in time; undefined: not all of them were found. */
function refundOthers(
  ask: MatchedRefundsInit['ask'],
  shares: readonly Share[],
  { attempt, untilMillis }: { readonly attempt: number; readonly untilMillis: number },
  done: (kept: readonly KeptLimit[] | undefined) => void,
): void {
  const answers = new Map<Share, RefundAnswer>();
  for (const share of shares) {
    const [{ userId }] = share.limits;
    ask(
      { ask: 'refund', userId, requestId: reservationId(attempt, share) },
      (answer) => {
        answers.set(share, answer);
        if (answers.size < shares.length) return;
        const isFound = [...answers.values()].every((one) => one.kind !== 'refund' || one.refund.refunded);
        const unasked = shares.filter((one) => answers.get(one)?.kind !== 'refund');
        done(isFound ? unasked.flatMap(({ limits }) => limits.map(keptOf)) : undefined);
      },
      untilMillis,
    );
  }
}

function keptOf({ ruleId, userId }: MatchedLimit): KeptLimit {
  return { ruleId, userId };
}
