/**
 * Asks for requests that rules find the limits of, wherever the partitions of their keys are led. Limits of one partition are
 * decided in one step of its log. Of several partitions all but the first are asked for reservations: grants like any other,
 * under ids of their own. When all have granted, the first is asked under the request's own id, and its answer is the answer. If
 * any denies, the reservations are given back.
 *
 * So nothing is ever over its limit anywhere. Where nobody can decide, and no rule that is meant is `closed`, their fail modes do
 * (degraded-decisions.ts): what others reserved for a request that is let through stays charged. Whoever asks may be lost in between: then the reservations stay charged until their
 * window is over, and the request counts nowhere else. It keeps no grants and judges nothing.
 */
import type { AllowAnswer, Decision, Invalid, Unavailable } from '../api/answer.ts';
import type { CustomerGuard, CustomerRecord } from '../api/customer.ts';
import type { DescribedAnswer, DescribedDone, DescribedRequest } from '../api/described.ts';
import { jointGrant, limitsOf } from '../api/joint-answer.ts';
import type { RefundRequest } from '../api/refund.ts';
import type { AllowRequest } from '../api/request.ts';
import { askedDigest } from './asked-digest.ts';
import { asOf, CustomerCache, type KnownCustomer } from './customer-cache.ts';
import type { Asking, Once, ReservationCounts, Reserved } from './asking.ts';
import { Customers } from './customers.ts';
import type { DescribedRequestsInit } from './described-requests-init.ts';
import { ownFirst, readOf, recordFound } from './record-read.ts';
import type { MatchedLimit, RuleBook } from './rule-book.ts';
import { isCertain, isGrant, outcomeOf, recordIn, type Share, wantsOtherRules } from './share-outcome.ts';

const STARTING: Unavailable = { kind: 'unavailable', reason: 'starting', proposed: false };
const NO_DOCUMENT: Invalid = {
  kind: 'invalid',
  field: 'descriptors',
  message: 'descriptors find no rules: none of this cluster say which requests they are for; name a rule',
};
const OVERLOADED: Unavailable = { kind: 'unavailable', reason: 'overloaded', proposed: false };
const RULES_CHANGED: Unavailable = { kind: 'unavailable', reason: 'rules_changed', proposed: false };

/** It is asked again at once where a record was another one; so often, and then with the next tick. */
const RECORDS_PER_TICK_MAX = 4;

export class DescribedRequests {
  /** What operators say of customers. */
  readonly customers: Customers;
  readonly #cache = new CustomerCache();
  readonly counts: ReservationCounts = { released: 0, left: 0 };
  readonly #init: DescribedRequestsInit;
  /** To be asked again with the next tick: rules were changing. */
  #waiting: Asking[] = [];

  constructor(init: DescribedRequestsInit) {
    this.#init = init;
    const { book, ask, doorMillis, deadlineMillis } = init;
    this.customers = new Customers({
      book,
      cache: this.#cache,
      ask: (request, done) => ask(request, done, doorMillis() + deadlineMillis),
    });
  }

  /** @param request well-formed, see `invalidInDescribed`; `done` is told once */
  ask(request: DescribedRequest, done: DescribedDone): void {
    const deadlineMillis = this.#init.doorMillis() + this.#init.deadlineMillis;
    this.#ask({
      request,
      deadlineMillis,
      done,
      isAgain: false,
      undecided: [],
      customer: undefined,
      recordsLearned: 0,
    });
  }

  tick(): void {
    const waiting = this.#waiting;
    this.#waiting = [];
    for (const asking of waiting) this.#ask(asking);
    this.#init.degraded.tick();
  }

  /** The rules of this node and of a partition differ: one of them will learn of the newer ones. */
  #again(asking: Asking, partition: number): void {
    const { monotonicMillis, waitingMax } = this.#init;
    if (monotonicMillis() >= asking.deadlineMillis) asking.done(RULES_CHANGED, partition);
    else if (this.#waiting.length >= waitingMax) asking.done(OVERLOADED, partition);
    else {
      asking.isAgain = true;
      asking.undecided = [];
      this.#waiting.push(asking);
    }
  }

  #ask(asking: Asking): void {
    const { request, done } = asking;
    const book = this.#init.book();
    if (book === 'starting') return done(STARTING, 0);
    if (book === undefined) return done(NO_DOCUMENT, 0);
    const customer = this.#cache.of(request);
    asking.customer = customer;
    const matched = book.limitsFor(asOf(request, customer));
    if (matched.kind === 'invalid') {
      const refuse = (): void => done(matched, 0);
      // It may be wrong by the tier of before.
      if (customer !== undefined) this.#askRecord(customer, [], { asking, book, goOn: refuse });
      else refuse();
      return;
    }
    if (!asking.isAgain) for (const windows of matched.onTrial) this.#try(windows, asking, book);
    const shares = this.#sharesOf(matched.enforced);
    if (customer === undefined) return this.#askShares(shares, asking, book);
    const partition = this.#init.partitionOf(customer.key);
    const ordered = ownFirst(shares, customer, partition);
    const goOn = (): void => this.#askShares(ordered, asking, book);
    if (ordered[0]?.partition === partition && !customer.isBlocked) goOn();
    else this.#askRecord(customer, ordered, { asking, book, goOn });
  }

  #askShares([first, ...others]: readonly Share[], asking: Asking, book: RuleBook): void {
    if (first === undefined) return asking.done({ kind: 'unlimited' }, 0);
    if (others.length === 0) this.#askFirst(first, [], asking, book);
    else this.#reserve(first, others, asking, book);
  }

  /**
   * No limit lies where the customer's record does: so that is read first, by the log. A change that was answered before this
   * request came is seen; one that comes meanwhile comes after it.
   */
  #askRecord(customer: KnownCustomer, shares: readonly Share[], { asking, book, goOn }: Once): void {
    const [first] = shares;
    const untilMillis = this.#reservationsUntil(shares, asking.deadlineMillis);
    this.#init.ask(
      readOf(customer),
      (answer, partition) => {
        const found = recordFound(answer, customer, shares);
        const refuse = (): void => {
          if (found.kind === 'refused') asking.done(found.answer, partition);
        };
        if (found.kind === 'other') this.#askWith(found.record, asking, partition);
        else if (found.kind === 'same') goOn();
        // What was granted to an earlier attempt is granted still.
        else if (first !== undefined && found.answer.kind === 'decision')
          this.#recall(first, asking, book, refuse);
        else refuse();
      },
      untilMillis,
    );
  }

  /** The customer's record is this one, and not what the request was matched with. */
  #askWith(record: CustomerRecord, asking: Asking, partition: number): void {
    if (asking.customer !== undefined) this.#cache.learn(asking.customer.key, record);
    asking.recordsLearned += 1;
    if (asking.recordsLearned % RECORDS_PER_TICK_MAX === 0) return this.#again(asking, partition);
    asking.isAgain = true;
    asking.undecided = [];
    this.#ask(asking);
  }

  /** By partition, in the order of the limits. */
  #sharesOf(limits: readonly MatchedLimit[]): Share[] {
    const shares = new Map<number, [MatchedLimit, ...MatchedLimit[]]>();
    for (const limit of limits) {
      const partition = this.#init.partitionOf(limit.userId);
      const known = shares.get(partition);
      if (known === undefined) shares.set(partition, [limit]);
      else known.push(limit);
    }
    return [...shares].map(([partition, ofPartition]) => ({ partition, limits: ofPartition }));
  }

  /** A rule on trial denies nothing; what it decides is counted where it is decided. */
  #try(windows: readonly MatchedLimit[], { request, deadlineMillis }: Asking, book: RuleBook): void {
    for (const share of this.#sharesOf(windows))
      this.#init.ask(requestFor(share, request, undefined, book), () => undefined, deadlineMillis);
  }

  #reserve(first: Share, others: readonly Share[], asking: Asking, book: RuleBook): void {
    const { request, deadlineMillis } = asking;
    const reserved: Reserved[] = others.map((share) => {
      return { share, requestId: this.#init.newId(), answer: undefined };
    });
    const untilMillis = this.#reservationsUntil(others, deadlineMillis);
    let open = reserved.length;
    for (const one of reserved) {
      const wanted = requestFor(one.share, request, one.requestId, book);
      this.#init.ask(
        wanted,
        (answer) => {
          one.answer = answer;
          open -= 1;
          if (open === 0) this.#reservedAll(first, reserved, asking, book);
        },
        untilMillis,
      );
    }
  }

  /** Where nobody may decide these and the request is let through all the same, there must be time left to ask the first. */
  #reservationsUntil(others: readonly Share[], deadlineMillis: number): number {
    const areClosed = others.every(({ limits }) => limits.every(({ rule }) => rule.failMode === 'closed'));
    return areClosed ? deadlineMillis : (this.#init.monotonicMillis() + deadlineMillis) / 2;
  }

  #reservedAll(first: Share, reserved: readonly Reserved[], asking: Asking, book: RuleBook): void {
    const outcome = outcomeOf(reserved);
    switch (outcome.kind) {
      case 'granted':
        this.#askFirst(first, reserved, asking, book);
        return;
      case 'refused':
        this.#release(reserved);
        this.#recall(first, asking, book, () =>
          this.#conclude(outcome.answer, outcome.share.partition, asking, reserved),
        );
        return;
      case 'undecided': {
        // Before the first is asked: what that grants under the request's own id is told to every retry.
        const { limits, share } = outcome;
        asking.undecided = limits;
        const retryAfterMillis = this.#init.degraded.millisUntilAllowed(limits);
        if (retryAfterMillis === 0) this.#askFirst(first, reserved, asking, book);
        else {
          this.#release(reserved);
          this.#recall(first, asking, book, () =>
            asking.done(this.#init.degraded.answer(limits, retryAfterMillis), share.partition),
          );
        }
      }
    }
  }

  /** What was granted to an earlier attempt is granted still, whatever others say now. @param ifNone what to do if nothing was */
  #recall(first: Share, asking: Asking, book: RuleBook, ifNone: () => void): void {
    const { request, deadlineMillis, done, undecided } = asking;
    if (request.requestId === undefined) {
      ifNone();
      return;
    }
    const { further: _, ...wanted } = requestFor(first, request, request.requestId, book);
    this.#init.ask(
      { ...wanted, ifRemembered: true },
      (answer, partition) => {
        // Nobody may know: what the share of this node refused is refused by that.
        const isUnknown = answer.kind === 'unavailable' && undecided.length > 0;
        if (wantsOtherRules(answer)) this.#again(asking, partition);
        else if (answer.kind === 'invalid' || isUnknown) ifNone();
        else done(answer, partition);
      },
      deadlineMillis,
    );
  }

  /** Under the request's own id: what is answered now is the answer. */
  #askFirst(share: Share, reserved: readonly Reserved[], asking: Asking, book: RuleBook): void {
    const { request, deadlineMillis } = asking;
    const wanted = requestFor(share, request, request.requestId, book);
    const guard = this.#guardOf(share, asking);
    this.#init.ask(
      guard === undefined ? wanted : { ...wanted, guard },
      (answer, partition) => this.#firstAnswered({ share, answer }, partition, reserved, asking),
      deadlineMillis,
    );
  }

  #guardOf({ partition }: Share, { customer }: Asking): CustomerGuard | undefined {
    if (customer === undefined || this.#init.partitionOf(customer.key) !== partition) return undefined;
    return { userId: customer.key, version: customer.version };
  }

  #firstAnswered(
    first: { readonly share: Share; readonly answer: AllowAnswer },
    partition: number,
    reserved: readonly Reserved[],
    asking: Asking,
  ): void {
    const { degraded } = this.#init;
    const { answer } = first;
    const outcome = outcomeOf([first]);
    let retryAfterMillis = 0;
    if (outcome.kind === 'undecided') {
      asking.undecided = [...outcome.limits, ...asking.undecided];
      retryAfterMillis = degraded.millisUntilAllowed(outcome.limits);
    }
    const isRefused = outcome.kind === 'refused' || retryAfterMillis > 0;
    // Of a grant made for an earlier attempt others are reserved already. And what the first may have granted is not given back:
    // a retry may learn that it did.
    if (isRefused ? isCertain(answer) : isGrant(answer) && answer.isRepeat === true) this.#release(reserved);
    if (outcome.kind === 'refused' || asking.undecided.length === 0)
      this.#conclude(answer, partition, asking, reserved);
    else asking.done(degraded.answer(asking.undecided, retryAfterMillis), partition);
  }

  #conclude(answer: AllowAnswer, partition: number, asking: Asking, reserved: readonly Reserved[]): void {
    const record = recordIn(answer);
    if (record !== undefined) this.#askWith(record, asking, partition);
    else if (wantsOtherRules(answer)) this.#again(asking, partition);
    else asking.done(together(answer, reserved), partition);
  }

  /** What was not granted, or not to our knowledge, is given back as well: it may have been. */
  #release(reserved: readonly Reserved[]): void {
    for (const { share, requestId, answer } of reserved) {
      if (answer === undefined || (!isGrant(answer) && isCertain(answer))) continue;
      const [{ userId }] = share.limits;
      this.#giveBack({ ask: 'refund', userId, requestId });
    }
  }

  #giveBack(refund: RefundRequest): void {
    const { monotonicMillis, deadlineMillis, ask } = this.#init;
    ask(
      refund,
      (answer) => {
        // What was not there may be on its way still.
        if (answer.kind === 'refund' && answer.refund.refunded) this.counts.released += 1;
        else this.counts.left += 1;
      },
      monotonicMillis() + deadlineMillis,
    );
  }
}

function requestFor(
  { limits }: Share,
  request: DescribedRequest,
  requestId: string | undefined,
  { version }: RuleBook,
): AllowRequest {
  const [{ userId, ruleId, cost }, ...further] = limits;
  const { timestampMillis } = request;
  const one = { userId, ruleId, cost, timestampMillis, requestId, matchedBy: version };
  const isSimple = requestId === undefined && further.length === 0;
  if (isSimple) return one;
  // Without an id nothing is remembered of it.
  const digest = requestId === undefined ? 1 : askedDigest(request);
  const others = further.map((limit) => ({ userId: limit.userId, ruleId: limit.ruleId, cost: limit.cost }));
  return { ...one, askedDigest: digest, further: others.length === 0 ? undefined : others };
}

/** All limits that were decided, and of a grant the one with least remaining. */
function together(answer: AllowAnswer, reserved: readonly Reserved[]): DescribedAnswer | Invalid {
  if (answer.kind !== 'decision' || answer.isRepeat === true || reserved.length === 0) return answer;
  if (answer.decision.isBlocked === true) return answer;
  const decisions = [answer.decision, ...reserved.flatMap((one) => decisionsOf(one, answer.decision))];
  const { allowed, decided } = answer.decision;
  if (!allowed) return { ...answer, decision: { ...answer.decision, limits: limitsOf(decisions) } };
  return { ...answer, decision: { ...jointGrant(decisions), decided } };
}

function decisionsOf({ answer }: Reserved, told: Decision): readonly Decision[] {
  return answer?.kind === 'decision' && answer.decision !== told ? [answer.decision] : [];
}
