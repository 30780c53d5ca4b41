/**
 * Runs a request through the partitions of its limits. If there are several, all but the first are asked for
 * reservations: ordinary grants under ids of their own. When all have granted, the first is asked under the request's
 * own id, and its answer is the answer. If one denies, the reservations are given back. So no limit is exceeded.
 * docs/internals/matching.md has the steps, docs/concepts/fail-modes.md the fail modes.
 */
import type { AllowAnswer } from '../api/answer.ts';
import type { CustomerRecord } from '../api/customer-record.ts';
import type { AskAnswer, AskDone, Question } from '../api/question.ts';
import type { ListedDone, ListedRequest } from '../api/listed.ts';
import type { RefundQuestion, RefundQuestionDone } from '../api/refund.ts';
import { type Asking, beginAgain, newAsking, NONE, type GoOn, takeLocal } from './open-request.ts';
import { ConfirmedRules } from './confirmed-rules.ts';
import { asOf, CustomerCache, type KnownCustomer } from './customer-cache.ts';
import { Customers } from './customers.ts';
import { refundRequest } from './matched-refunds.ts';
import type { AskInTime, MatchedRequestsInit } from './matched-requests-init.ts';
import { askListed, type Peek } from './listed-requests.ts';
import { deniedHere, longestDenial } from './denials.ts';
import { mayHaveMoved } from './earlier-rule-sets.ts';
import { Peeks } from './peeks.ts';
import type { MatchedLimits } from './matched-limit.ts';
import { OVERLOADED, STARTING, TOO_LATE } from './node-refusals.ts';
import { recall, recallEarlier, type RecallInit } from './recall.ts';
import { ownFirst, readOf, recordFound } from './record-read.ts';
import {
  Reservations,
  reservationsFor,
  reservationsUntil,
  reserveAll,
  type Reserved,
} from './reservations.ts';
import type { RuleSet } from './rule-set.ts';
import {
  type AnsweredPart,
  isCertain,
  isGrant,
  outcomeOf,
  recordIn,
  type RefusedPart,
  type RequestPart,
  partsOfRequest,
  together,
  wholeAnswer,
  wantsOtherRules,
  withKey,
} from './part-outcome.ts';
import { guardOf, ownRequestFor, plainRequestFor, plainPart, requestFor } from './part-request.ts';
import { leftNow, settle } from './settlements.ts';
import { ShadowRules } from './shadow-rules.ts';
import { WaitingForRules } from './waiting-for-rules.ts';

/** How often a request is matched again in one tick because its customer's record has changed. */
const RECORDS_PER_TICK_MAX = 4;

/** Finds the limits of each request by the rules, and asks their partitions. One per node; it stores no grants. */
export class MatchedRequests {
  /** Reads and changes of customers. */
  readonly customers: Customers;
  readonly peeks: Peeks;
  /** Reservations that have to be given back. */
  readonly reservations: Reservations;
  readonly #cache = new CustomerCache();
  readonly #init: MatchedRequestsInit;
  readonly #waiting: WaitingForRules;
  readonly #recalls: RecallInit;
  readonly #confirmed: ConfirmedRules;
  readonly #shadows: ShadowRules;

  constructor(init: MatchedRequestsInit) {
    this.#init = init;
    const { ruleSet, ask, listenerMillis, deadlineMillis } = init;
    const askInTime: AskInTime = (request, done) => ask(request, done, listenerMillis() + deadlineMillis);
    this.customers = new Customers({ ruleSet, cache: this.#cache, ask: askInTime });
    this.peeks = new Peeks({ ruleSet, ask: askInTime });
    this.reservations = new Reservations(init);
    this.#waiting = new WaitingForRules(init);
    this.#recalls = { ...init, waiting: this.#waiting };
    this.#confirmed = new ConfirmedRules(init);
    this.#shadows = new ShadowRules(init, this.reservations);
  }

  /** Asks for a request; calls `done` once. @param request well-formed (`invalidInQuestion`) */
  ask(request: Question, done: AskDone): void {
    const deadlineMillis = this.#init.listenerMillis() + this.#init.deadlineMillis;
    const ruleSet = this.#init.ruleSet();
    if (ruleSet === 'starting') return done(STARTING, 0);
    const only = request.settle === true ? undefined : ruleSet.onlyLimitFor(request);
    if (only === undefined || mayHaveMoved(request, only, this.#init.earlier))
      return this.#ask(newAsking(request, deadlineMillis, done));
    // The common case, one limit: nothing more is allocated than the request to its one partition.
    const wanted = plainRequestFor(only, request, ruleSet.version);
    const answered = (answer: AllowAnswer, partition: number): void => {
      const whole = wholeAnswer(wanted, answer);
      if (whole !== undefined) return done(whole, partition);
      const asking = newAsking(request, deadlineMillis, done, ruleSet.version);
      if (ruleSet.unmatched === 'shadow') this.#shadows.listenForUnmatched(asking);
      const part = plainPart(only, wanted, partition);
      this.#firstAnswered({ part, answer }, partition, NONE, asking);
    };
    this.#init.ask(wanted, answered, deadlineMillis);
  }

  /** Asks for a request of lists; calls `done` once, with an outcome for each list. @param peek peeks at a limit */
  askListed(request: ListedRequest, peek: Peek, done: ListedDone): void {
    const { ruleSet, listenerMillis, deadlineMillis } = this.#init;
    const init = { ruleSet, peek, deadlineMillis: listenerMillis() + deadlineMillis };
    askListed({ ...init, ask: (asking) => this.#ask(asking) }, request, done);
  }

  /** Refunds the grant of a request with an id; calls `done` once. @param refund well-formed (`invalidInQuestion`) */
  refund(refund: RefundQuestion, done: RefundQuestionDone): void {
    refundRequest(this.#init, this.#cache, refund, done);
  }

  /** Adds to the answer of a settlement what its limits have left now, see settlements.ts. */
  leftNow(question: Question, settled: AskAnswer, done: (answer: AskAnswer) => void): void {
    leftNow(this.#init, this.#cache, { question, settled }, done);
  }

  /** Call every few milliseconds: retries requests that wait for newer rules, and releases of reservations. */
  tick(): void {
    for (const asking of this.#waiting.takeAll()) this.#ask(asking);
    this.reservations.tick();
    this.#init.degraded.tick();
  }

  #ask(asking: Asking): void {
    const { request, done } = asking;
    const ruleSet = this.#init.ruleSet();
    if (ruleSet === 'starting') return done(STARTING, 0);
    asking.rulesVersion = ruleSet.version;
    const customer = this.#cache.of(request);
    asking.customer = customer;
    const lists = request.listed && ruleSet.chargeableListsFor(request.listed);
    const matched = lists ?? ruleSet.limitsFor(asOf(request, customer));
    asking.lists = lists?.kind === 'limits' ? lists : undefined;
    asking.unmatched = matched.kind === 'limits' ? matched.unmatched : undefined;
    asking.answered = NONE;
    if (ruleSet.unmatched === 'shadow' && !asking.isAgain) this.#shadows.listenForUnmatched(asking);
    if (matched.kind !== 'limits') {
      const refuse = (): void => this.#confirmed.refuse(matched, ruleSet, asking, this.#reporting(asking));
      // The refusal may be due to an outdated tier, so read the record first.
      if (customer !== undefined) this.#askRecord(customer, [], { asking, ruleSet, goOn: refuse });
      else refuse();
      return;
    }
    if (asking.isAgain || matched.shadowed.length === 0) return this.#askMatched(matched, asking, ruleSet);
    const tryThem = this.#shadows.begin(matched.shadowed, asking, ruleSet);
    this.#askMatched(matched, asking, ruleSet);
    tryThem();
  }

  #askMatched({ enforced }: MatchedLimits, asking: Asking, ruleSet: RuleSet): void {
    const { customer } = asking;
    const parts = partsOfRequest(enforced, this.#init.partitionOf);
    if (customer === undefined) return this.#askParts(parts, asking, ruleSet);
    const partition = this.#init.partitionOf(customer.key);
    const ordered = ownFirst(parts, customer, partition);
    const goOn = (): void => this.#askParts(ordered, asking, ruleSet);
    if (ordered[0]?.partition === partition && !customer.isBlocked) goOn();
    else this.#askRecord(customer, ordered, { asking, ruleSet, goOn });
  }

  #askParts(parts: readonly RequestPart[], asking: Asking, ruleSet: RuleSet): void {
    const [first, ...others] = parts;
    if (asking.request.requestId !== undefined && !asking.isRecalled)
      return recallEarlier(this.#recalls, parts, { asking, ruleSet }, () =>
        this.#askParts(parts, asking, ruleSet),
      );
    if (first === undefined) return this.#confirmed.reportUncounted(ruleSet, asking, this.#reporting(asking));
    if (asking.request.settle === true)
      return settle(this.#init, [first, ...others], { asking, ruleSet }, (answer, partition, reserved) =>
        this.#conclude(answer, partition, asking, reserved),
      );
    if (others.length === 0) return this.#askFirst(first, NONE, asking, ruleSet);
    const denied = deniedHere(this.#init, parts, asking, ruleSet);
    asking.isDeniedHere = denied.length > 0;
    if (asking.isDeniedHere) this.#deny(parts, denied, asking, ruleSet);
    else this.#reserve(first, others, asking, ruleSet);
  }

  /** Sends an answer, but lets the request wait if the partition has newer rules. */
  #reporting(asking: Asking): AskDone {
    return (answer, partition) => {
      if (wantsOtherRules(answer)) this.#waiting.add(asking, partition);
      else asking.done(answer, partition);
    };
  }

  /**
   * Reads the customer's record through its log before any limit is asked, so every change that was acknowledged
   * before this request came takes effect.
   */
  #askRecord(customer: KnownCustomer, parts: readonly RequestPart[], { asking, ruleSet, goOn }: GoOn): void {
    const [first] = parts;
    const untilMillis = reservationsUntil(parts, this.#init.monotonicMillis(), asking.deadlineMillis);
    this.#init.ask(
      readOf(customer),
      (answer, partition) => {
        const found = recordFound(answer, customer, parts, ruleSet.version, asking.request.settle);
        if (found.kind === 'same' && found.record !== undefined)
          this.#cache.confirm(customer.key, found.record);
        const refuse = (): void => {
          if (found.kind === 'refused') asking.done(found.answer, partition);
        };
        if (found.kind === 'other') this.#askWith(found.record, asking, partition);
        else if (found.kind === 'same') goOn();
        // A grant to an earlier attempt still stands.
        else if (first !== undefined && found.answer.kind === 'decision')
          this.#recall(first, asking, ruleSet, refuse);
        else refuse();
      },
      untilMillis,
    );
  }

  /** Matches the request again, by the record that a partition answered with. */
  #askWith(record: CustomerRecord, asking: Asking, partition: number): void {
    if (asking.customer !== undefined) this.#cache.learn(asking.customer.key, record);
    asking.recordsLearned += 1;
    if (asking.recordsLearned % RECORDS_PER_TICK_MAX === 0) return this.#waiting.add(asking, partition);
    beginAgain(asking);
    this.#ask(asking);
  }

  #reserve(first: RequestPart, others: readonly RequestPart[], asking: Asking, ruleSet: RuleSet): void {
    if (this.reservations.isFull) return asking.done(OVERLOADED, first.partition);
    asking.attempt = this.#init.newAttempt();
    const reserved = reservationsFor(others, asking.attempt);
    asking.answered = reserved;
    const untilMillis = reservationsUntil(others, this.#init.monotonicMillis(), asking.deadlineMillis);
    const wantedOf = (one: Reserved) => requestFor(one.part, asking.request, one.requestId, ruleSet);
    const next = (): void => this.#reservedAll(first, reserved, asking, ruleSet);
    reserveAll(this.#init.ask, reserved, { wantedOf, untilMillis }, next);
  }

  #reservedAll(first: RequestPart, reserved: readonly Reserved[], asking: Asking, ruleSet: RuleSet): void {
    const outcome = outcomeOf(reserved);
    switch (outcome.kind) {
      case 'granted':
        return this.#askFirst(first, reserved, asking, ruleSet);
      case 'refused':
        this.reservations.release(reserved);
        this.#refuse(first, outcome, { asking, ruleSet, reserved });
        return;
      case 'undecided': {
        // Take the local fraction now, before the first part is asked: once that part grants under the request's own
        // id, every retry gets that grant.
        const { limits, part } = outcome;
        asking.undecided = limits;
        const retryAfterMillis = takeLocal(asking, limits, this.#init.degraded);
        if (retryAfterMillis === 0) this.#askFirst(first, reserved, asking, ruleSet);
        else {
          this.reservations.release(reserved);
          this.#recall(first, asking, ruleSet, () =>
            asking.done(
              this.#init.degraded.answer(limits, ruleSet.version, retryAfterMillis),
              part.partition,
            ),
          );
        }
      }
    }
  }

  /**
   * Denies after reading the record of the customer, whose partition was not asked yet: the denial may come from a
   * limit of an outdated tier.
   */
  #refuse(
    first: RequestPart,
    { answer, part }: RefusedPart,
    { asking, ruleSet, reserved }: Omit<GoOn, 'goOn'> & { readonly reserved: readonly Reserved[] },
  ): void {
    const { customer } = asking;
    if (answer.kind !== 'decision')
      return this.#recall(first, asking, ruleSet, () =>
        this.#conclude(answer, part.partition, asking, reserved),
      );
    const parts = [first, ...reserved.map((one) => one.part)];
    const deny = (): void => this.#deny(parts, reserved, asking, ruleSet);
    const guard = guardOf(first, asking, this.#init.partitionOf);
    if (customer === undefined || guard === undefined) deny();
    else this.#askRecord(customer, [first], { asking, ruleSet, goOn: deny });
  }

  /** Denies the request. The answer is that of the limit with the longest wait, whichever node was asked. */
  #deny(
    parts: readonly RequestPart[],
    answered: readonly AnsweredPart[],
    asking: Asking,
    ruleSet: RuleSet,
  ): void {
    const whenPeeked = longestDenial(this.#init, parts, answered, { asking, ruleSet });
    this.#recall(parts[0]!, asking, ruleSet, () =>
      whenPeeked(({ denied, answered: all }) => {
        const isLate = this.#init.monotonicMillis() >= asking.deadlineMillis;
        asking.answered = all;
        asking.done(isLate ? TOO_LATE : withKey(denied.answer, all), denied.part.partition);
      }),
    );
  }

  #recall(first: RequestPart, asking: Asking, ruleSet: RuleSet, ifNone: () => void): void {
    recall(this.#recalls, { asking, ruleSet, first, ifNone });
  }

  /** Asks the first part under the request's own id. Its answer is the answer to the request. */
  #askFirst(part: RequestPart, reserved: readonly Reserved[], asking: Asking, ruleSet: RuleSet): void {
    this.#init.ask(
      ownRequestFor(part, asking, ruleSet, this.#init.partitionOf),
      (answer, partition) => this.#firstAnswered({ part, answer }, partition, reserved, asking),
      asking.deadlineMillis,
    );
  }

  #firstAnswered(
    first: { readonly part: RequestPart; readonly answer: AllowAnswer },
    partition: number,
    reserved: readonly Reserved[],
    asking: Asking,
  ): void {
    const { degraded } = this.#init;
    const { answer } = first;
    asking.answered = [first, ...reserved];
    const outcome = outcomeOf([first]);
    let retryAfterMillis = 0;
    if (outcome.kind === 'undecided') {
      asking.undecided = [...outcome.limits, ...asking.undecided];
      retryAfterMillis = takeLocal(asking, outcome.limits, degraded);
    }
    const isRefused = outcome.kind === 'refused' || retryAfterMillis > 0;
    // Release the reservations if the request was certainly not charged, or the grant repeats one with reservations
    // of its own. If the first part may have granted it, keep them: a retry may find that grant.
    if (isRefused ? isCertain(answer) : isGrant(answer) && answer.isRepeat === true)
      this.reservations.release(reserved);
    if (outcome.kind === 'refused' || asking.undecided.length === 0)
      this.#conclude(answer, partition, asking, reserved);
    else asking.done(degraded.answer(asking.undecided, asking.rulesVersion, retryAfterMillis), partition);
  }

  #conclude(answer: AllowAnswer, partition: number, asking: Asking, reserved: readonly AnsweredPart[]): void {
    const record = recordIn(answer);
    if (record !== undefined) this.#askWith(record, asking, partition);
    else if (wantsOtherRules(answer)) this.#waiting.add(asking, partition);
    else asking.done(withKey(together(answer, reserved), asking.answered), partition);
  }
}
