/**
 * Refunds the grant of a request. The partition that keeps the request id refunds first. It remembers the number of
 * the attempt that was granted; under this number the reservations in the other partitions are refunded next. The
 * answer lists what stays charged. For a request with a customer the record is read first, as it determines which
 * partition keeps the id. (See README.md.)
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
import { earlierKeepers } from './earlier-rule-sets.ts';
import { asOf, type CustomerCache, type KnownCustomer } from './customer-cache.ts';
import { ownFirst, readOf } from './record-read.ts';
import type { MatchedLimit } from './matched-limit.ts';
import { STARTING } from './node-refusals.ts';
import { reservationId } from './reservations.ts';
import type { RuleSet } from './rule-set.ts';
import { type RequestPart, partsOfRequest } from './part-outcome.ts';

/** What `refundRequest` needs. */
export interface MatchedRefundsInit {
  /** See `MatchedRequestsInit`. */
  readonly ruleSet: () => RuleSet | 'starting';
  readonly earlier: () => readonly RuleSet[];
  readonly partitionOf: (userId: string) => number;
  readonly ask: <R extends CustomerRequest | RefundRequest>(
    request: R,
    done: DoneWith<R>,
    deadlineMillis: number,
  ) => void;
  readonly listenerMillis: () => number;
  readonly deadlineMillis: number;
}

interface Refunding {
  readonly refund: RefundQuestion;
  readonly ruleSet: RuleSet;
  readonly customer: KnownCustomer | undefined;
  readonly untilMillis: number;
}

/**
 * Refunds what was granted under the id of the request.
 *
 * @param cache learns the customer record that is read
 * @param done called once. `kept`: limits that stay charged; undefined if not all of them are known
 */
export function refundRequest(
  init: MatchedRefundsInit,
  cache: CustomerCache,
  refund: RefundQuestion,
  done: RefundQuestionDone,
): void {
  const { ruleSet: ruleSetOf, ask, listenerMillis, deadlineMillis } = init;
  const ruleSet = ruleSetOf();
  if (ruleSet === 'starting') return done(STARTING, 0);
  const untilMillis = listenerMillis() + deadlineMillis;
  const customer = cache.of(refund);
  if (customer === undefined) return refundAs(init, { refund, ruleSet, customer, untilMillis }, done);
  ask(
    readOf(customer),
    (answer, partition) => {
      if (answer.kind !== 'customer') return done(answer, partition);
      cache.learn(customer.key, answer.outcome.record);
      const known = cache.of(refund);
      refundAs(init, { refund, ruleSet, customer: known, untilMillis }, done);
    },
    untilMillis,
  );
}

function refundAs(
  { earlier, partitionOf, ask }: MatchedRefundsInit,
  { refund, ruleSet, customer, untilMillis }: Refunding,
  done: RefundQuestionDone,
): void {
  const matched = ruleSet.limitsFor(asOf(refund, customer));
  if (matched.kind === 'invalid') return done(matched, 0);
  const parts = partsOfRequest(matched.enforced, partitionOf);
  const [first, ...others] =
    customer === undefined ? parts : ownFirst(parts, customer, partitionOf(customer.key));
  const nowKept = first?.limits[0].userId;
  const before = earlierKeepers(earlier(), { request: refund, customer }, nowKept, partitionOf);
  const keys = [
    ...(nowKept === undefined ? [] : [nowKept]),
    ...before.map(([{ limits }]) => limits[0].userId),
  ];
  const refundAt = (place: number): void => {
    const userId = keys[place];
    if (userId === undefined) return done({ kind: 'unlimited', rulesVersion: ruleSet.version }, 0);
    ask(
      { ask: 'refund', userId, requestId: refund.requestId },
      (answer, partition) => {
        if (answer.kind !== 'refund') return done(answer, partition);
        const { refunded, rulesVersion, attempt } = answer.refund;
        const report = (kept: readonly KeptLimit[] | undefined): void => done({ ...answer, kept }, partition);
        // By earlier rules another key may keep the id.
        if (!refunded && place + 1 < keys.length) refundAt(place + 1);
        else if (!refunded || attempt === undefined) report([]);
        // Other rules, or another tier, may have charged other limits in other partitions.
        else if (rulesVersion !== ruleSet.version || others.length === 0) report(undefined);
        else refundOthers(ask, others, { attempt, untilMillis }, report);
      },
      untilMillis,
    );
  };
  refundAt(0);
}

/**
 * Refunds the reservations of one attempt. `done` gets the limits that stay charged as their partition did not
 * answer in time; undefined if a reservation was not found.
 */
function refundOthers(
  ask: MatchedRefundsInit['ask'],
  parts: readonly RequestPart[],
  { attempt, untilMillis }: { readonly attempt: number; readonly untilMillis: number },
  done: (kept: readonly KeptLimit[] | undefined) => void,
): void {
  const answers = new Map<RequestPart, RefundAnswer>();
  for (const part of parts) {
    const [{ userId }] = part.limits;
    ask(
      { ask: 'refund', userId, requestId: reservationId(attempt, part) },
      (answer) => {
        answers.set(part, answer);
        if (answers.size < parts.length) return;
        const isFound = [...answers.values()].every((one) => one.kind !== 'refund' || one.refund.refunded);
        const unasked = parts.filter((one) => answers.get(one)?.kind !== 'refund');
        done(isFound ? unasked.flatMap(({ limits }) => limits.map(keptOf)) : undefined);
      },
      untilMillis,
    );
  }
}

function keptOf({ ruleId, userId }: MatchedLimit): KeptLimit {
  return { ruleId, userId };
}
