/**
 * Requests that wait for the log: first for a place in an entry, then until that entry is applied. Each is answered
 * exactly once, and its retries with it. This file decides nothing and does not know which node leads.
 */
import type { AllowRequest } from '../api/request.ts';
import type { CustomerRequest } from '../api/customer.ts';
import type { Answer, BatchedRequest, LoggedRequest, UserRequest } from '../api/user-request.ts';
import type { Entry } from '../../raft/types.ts';
import { BATCH_REQUESTS_MAX, rowsOf } from '../limiter/log/batch.ts';
import { AllowBatchBuilder } from '../limiter/log/batch-builder.ts';
import { encodeCustomers } from '../limiter/log/customer-entry.ts';
import { DelayLimit } from '../shedding/delay-limit.ts';
import { conflictBetween, questionOf } from '../limiter/question.ts';
import { unavailable } from './answer.ts';
import { RetryIndex } from './retry-index.ts';
import { CustomerQueue } from './customer-queue.ts';
import { CommitTimes, type EntryTiming } from './entry-timing.ts';
import type { PartitionOptions } from './partition-options.ts';

/** Receives the answer to a request. */
export type Done = (answer: Answer) => void;

/** A waiting request. */
export interface Waiter<R extends LoggedRequest = LoggedRequest> {
  readonly request: R;
  readonly done: Done;
  /** The latest deadline of the request and its retries, on the monotonic clock. */
  deadlineMillis: number;
  /** Set if the request has an id. Retries that came before it was in the log wait in `retries`. */
  readonly retryKey: string | undefined;
  retries: Done[] | undefined;
}

/** A request that waits until a new leader has applied everything that was decided before. */
export interface Early {
  readonly request: UserRequest;
  readonly deadlineMillis: number;
  readonly done: Done;
}

/** The requests that wait for one entry. */
interface Inflight {
  readonly index: number;
  readonly term: number;
  readonly sinceMillis: number;
  /** When the queue that these requests were taken from had last become non-empty. */
  readonly queuedMillis: number;
  readonly waiters: readonly Waiter[];
}

/** A client that repeats a request this often while it is undecided gains nothing by one more retry. */
const RETRIES_WAITING_MAX = 64;

/**
 * A refund searches the grants of its key since the refunded one: up to one grant per millisecond for as long as an
 * id is remembered. Two minutes of grants are less than a millisecond of work.
 */
const REFUNDS_PER_ENTRY_MAX = 16;
/**
 * Requests that wait longer are in a queue, here or at the followers, and would soon miss their deadlines. A merely
 * slow disk is tolerated: as many requests as fit into one entry are always accepted.
 */
const QUEUE_MILLIS = 250;
/** The most refunds that may wait. They fill 16 entries, so a request behind them waits for at most 16 entries. */
const REFUNDS_PENDING_MAX = 16 * REFUNDS_PER_ENTRY_MAX;

/** The waiting requests of one partition. */
export class Waiters {
  readonly #monotonicMillis: () => number;
  readonly #timed: ((timing: EntryTiming) => void) | undefined;
  /** Not in the log yet, in the order in which they came. */
  #pending: Waiter<BatchedRequest>[] = [];
  /** The same for customer commands, which get entries of their own. */
  readonly #customers = new CustomerQueue<Waiter<CustomerRequest>>();
  #tookCustomers = false;
  /** How many of `#pending` are refunds. */
  #pendingRefunds = 0;
  /** The requests in the entry that is being proposed. */
  #proposing: readonly Waiter[] = [];
  /**
   * Entries of this node's own proposals that are not applied yet, oldest first. They are few, so this is no Map: see
   * src/wire/by-id.ts.
   */
  #inflight: Inflight[] = [];
  /** When the entry that is being applied was found to be committed. */
  #committedAtMillis = 0;
  /** The number of requests in `#inflight`. */
  #inflightRequests = 0;
  readonly #retryIndex = new RetryIndex<Waiter>();
  readonly #builder = new AllowBatchBuilder();
  readonly #commitTimes = new CommitTimes();
  /** How many requests may wait in total, before the log and in it. */
  readonly #limit: DelayLimit;
  /** When the queue for the log (requests without a place in it) last became non-empty. */
  #queuedMillis = 0;
  /** The value of `#queuedMillis` when the last batch was taken. */
  #takenMillis = 0;

  /**
   * @param monotonicMillis the clock of all deadlines; must not run back
   * @param timed called for every entry of this node that was applied
   */
  constructor(
    monotonicMillis: () => number,
    { batchMax, pendingMax, inflightMax }: PartitionOptions,
    timed?: (timing: EntryTiming) => void,
  ) {
    this.#monotonicMillis = monotonicMillis;
    this.#timed = timed;
    const most = pendingMax + inflightMax;
    this.#limit = new DelayLimit({ least: Math.min(most, batchMax), most, targetMillis: QUEUE_MILLIS });
  }

  /** How many requests wait for a place in the log. */
  get pendingCount(): number {
    return this.#pending.length + this.#customers.size;
  }

  /** How many requests wait for their entry to be applied. */
  get inflightCount(): number {
    return this.#inflightRequests;
  }

  /** Must one more such request be refused as `overloaded`? */
  isFullFor(
    { ask }: LoggedRequest,
    { pendingMax, inflightMax }: Pick<PartitionOptions, 'pendingMax' | 'inflightMax'>,
  ): boolean {
    if (this.pendingCount >= pendingMax || this.inflightCount >= inflightMax) return true;
    if (ask === 'refund' && this.#pendingRefunds >= REFUNDS_PENDING_MAX) return true;
    if (this.#limit.roomBeside(this.pendingCount + this.inflightCount) > 0) return false;
    this.#limit.refused();
    return true;
  }

  /** Adds a request. `retryKey`: see `requestKeyOf`. */
  add(retryKey: string | undefined, request: LoggedRequest, deadlineMillis: number, done: Done): void {
    if (this.pendingCount === 0) this.#queuedMillis = this.#monotonicMillis();
    if (request.ask === 'customer') {
      this.#customers.add({ request, done, deadlineMillis, retryKey: undefined, retries: undefined });
      return;
    }
    const waiter: Waiter<BatchedRequest> = { request, done, deadlineMillis, retryKey, retries: undefined };
    this.#retryIndex.add(waiter);
    this.#pending.push(waiter);
    if (request.ask === 'refund') this.#pendingRefunds += 1;
  }

  /**
   * Lets a retry wait with its first attempt, if that is here and not in the log yet. Returns whether it does.
   *
   * Behind an attempt that is in the log, a retry gets a place of its own: another leader may have committed that
   * attempt already, and refunded it, and this node may learn of it late. A different request with the same id also
   * gets its own place; the log decides which of them owns the id. The log may already contain this very attempt,
   * sent by a former leader and not applied here yet.
   */
  maybeJoin(retryKey: string, request: AllowRequest, deadlineMillis: number, done: Done): boolean {
    const earlier = this.#retryIndex.find(retryKey);
    if (earlier === undefined) return false;
    if (earlier.request.ask !== undefined) return false;
    const conflict = conflictBetween(questionOf(earlier.request), questionOf(request));
    if (conflict !== undefined) return false;
    earlier.retries ??= [];
    earlier.deadlineMillis = Math.max(earlier.deadlineMillis, deadlineMillis);
    // Another attempt has reservations of its own. Report the grant to it as a repeat, so that its node releases
    // them.
    const isOther = request.attempt !== earlier.request.attempt;
    if (earlier.retries.length >= RETRIES_WAITING_MAX) done(unavailable('overloaded', false));
    else earlier.retries.push(isOther ? (answer) => done(asRepeat(answer)) : done);
    return true;
  }

  /**
   * Takes the next entry for the log, of up to `requestsMax` requests. Requests that cannot be answered in time are
   * refused instead. Requests of users and commands of operators take turns.
   */
  takeBatch(requestsMax: number): Uint8Array | undefined {
    const now = this.#monotonicMillis();
    this.#takenMillis = this.#queuedMillis;
    // If nothing is in flight there is no measurement, so it is tried.
    const inTimeMillis = this.#inflight.length === 0 ? now : now + this.#commitTimes.fastestMillis;
    const isTheirTurn = this.#pending.length === 0 || !this.#tookCustomers;
    this.#tookCustomers = isTheirTurn && this.#customers.size > 0;
    if (this.#tookCustomers) return this.#takeCustomers(requestsMax, inTimeMillis);
    const taken: Waiter[] = [];
    let refunds = 0;
    let next = 0;
    while (next < this.#pending.length && taken.length < requestsMax) {
      const waiter = this.#pending[next];
      next += 1;
      if (waiter === undefined) continue;
      const isFull = this.#builder.size + rowsOf(waiter.request) > BATCH_REQUESTS_MAX;
      const isRefund = waiter.request.ask === 'refund';
      if (isFull || (isRefund && refunds === REFUNDS_PER_ENTRY_MAX)) {
        next -= 1;
        break;
      }
      if (isRefund) {
        refunds += 1;
        this.#pendingRefunds -= 1;
      }
      if (waiter.deadlineMillis <= inTimeMillis) {
        // Nobody waits for it any more: a grant would be charged in vain.
        this.answer(waiter, unavailable('deadline', false));
        continue;
      }
      this.#builder.add(waiter.request);
      this.#retryIndex.delete(waiter);
      taken.push(waiter);
    }
    this.#pending = next === this.#pending.length ? [] : this.#pending.slice(next);
    this.#proposing = taken;
    return taken.length === 0 ? undefined : this.#builder.take();
  }

  #takeCustomers(requestsMax: number, inTimeMillis: number): Uint8Array | undefined {
    const taken: Waiter<CustomerRequest>[] = [];
    for (const waiter of this.#customers.take(requestsMax)) {
      if (waiter.deadlineMillis <= inTimeMillis) this.answer(waiter, unavailable('deadline', false));
      else taken.push(waiter);
    }
    this.#proposing = taken;
    return taken.length === 0 ? undefined : encodeCustomers(taken.map(({ request }) => request));
  }

  /** This node leads in `term`. */
  leads(term: number): void {
    this.#commitTimes.leads(term);
  }

  /** The batch taken last is in `entry` now; undefined: in none, and it never will be. */
  proposed(entry: Entry | undefined): void {
    const waiters = this.#proposing;
    this.#proposing = [];
    if (entry === undefined) {
      this.answerAll(waiters, unavailable('overloaded', false));
      return;
    }
    // An entry of an earlier term at this index is gone from this log, but another replica may still commit it.
    this.#answerInflight((index) => index === entry.index, unavailable('unknown_outcome', true));
    const sinceMillis = this.#monotonicMillis();
    const queuedMillis = this.#takenMillis;
    const { index, term } = entry;
    this.#inflight.push({ index, term, sinceMillis, queuedMillis, waiters });
    this.#inflightRequests += waiters.length;
  }

  /**
   * This entry is committed, so nothing else can be at its index. Removes and returns the requests that waited for
   * that index, in their order in the entry. The entry is theirs if the terms are equal.
   */
  leave({ index, term }: Entry): Inflight | undefined {
    const inflight = this.#inflight.find((one) => one.index === index);
    if (inflight === undefined) return undefined;
    this.#forget(inflight);
    this.#committedAtMillis = this.#monotonicMillis();
    if (inflight.term === term) {
      this.#commitTimes.observe(term, this.#committedAtMillis - inflight.sinceMillis);
      this.#limit.observe(this.#committedAtMillis - inflight.queuedMillis, this.#committedAtMillis);
    }
    return inflight;
  }

  /**
   * What `leave` returned is applied now. If the entry is of another leader, these requests can never be committed.
   */
  applied({ term: proposed, waiters, sinceMillis, queuedMillis }: Inflight, { index, term }: Entry): void {
    if (proposed !== term) {
      this.answerAll(waiters, unavailable('no_leader', false));
      return;
    }
    const [first] = waiters;
    if (first === undefined || this.#timed === undefined) return;
    const commitMillis = this.#committedAtMillis - sinceMillis;
    const applyMillis = this.#monotonicMillis() - this.#committedAtMillis;
    const millis = { queueMillis: sinceMillis - queuedMillis, commitMillis, applyMillis };
    this.#timed({ term, index, requests: waiters.length, ...millis, sample: first.request });
  }

  /**
   * Terms never decrease along a log, so after a committed entry no entry of an earlier term can be committed.
   * Requests that wait for such an entry were certainly not decided.
   */
  answerOverruled({ index: end, term: committed }: { readonly index: number; readonly term: number }): void {
    this.#answerInflight((index, term) => index > end && term < committed, unavailable('no_leader', false));
  }

  /** Answers all requests that are in the log and not applied yet. */
  answerProposed(answer: Answer): void {
    this.#answerInflight(() => true, answer);
  }

  /** Answers all requests that are not in the log yet. */
  answerPending(answer: Answer): void {
    const pending = this.#pending;
    this.#pending = [];
    this.#pendingRefunds = 0;
    this.answerAll([...pending, ...this.#customers.takeAll()], answer);
  }

  /** Answers all requests that are not in the log yet and whose limits were found by rules of another version. */
  answerMatchedByOther(version: number, answer: Answer): void {
    const isOther = ({ request }: Waiter<BatchedRequest>): boolean =>
      request.ask === undefined && request.matchedBy !== undefined && request.matchedBy !== version;
    const others = this.#pending.filter(isOther);
    if (others.length === 0) return;
    this.#pending = this.#pending.filter((waiter) => !isOther(waiter));
    this.answerAll(others, answer);
  }

  answerAll(waiters: readonly Waiter[], answer: Answer): void {
    for (const waiter of waiters) this.answer(waiter, answer);
  }

  /** Answers one request, which no longer waits here, and its retries. */
  answer(waiter: Waiter, answer: Answer): void {
    this.#retryIndex.delete(waiter);
    waiter.done(answer);
    if (waiter.retries !== undefined) for (const done of waiter.retries) done(answer);
  }

  #answerInflight(isMeant: (index: number, term: number) => boolean, answer: Answer): void {
    for (const inflight of this.#inflight.slice()) {
      if (!isMeant(inflight.index, inflight.term)) continue;
      this.#forget(inflight);
      this.answerAll(inflight.waiters, answer);
    }
  }

  #forget(inflight: Inflight): void {
    this.#inflight = this.#inflight.filter((one) => one !== inflight);
    this.#inflightRequests -= inflight.waiters.length;
  }
}

function asRepeat(answer: Answer): Answer {
  return answer.kind === 'decision' && answer.decision.allowed ? { ...answer, isRepeat: true } : answer;
}
