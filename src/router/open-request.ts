/**
 * One request to one partition, from the caller of the router to its answer: which nodes were asked, and what their
 * answers mean together. A request of a listener with limits in several partitions has one of these for each. Also all
 * such requests of a router.
 *
 * A request that was sent to one node may be proposed there. So it is sent to a second node only if it has an id,
 * which makes the repeat the same request, and it is rejected only if no node may still grant it. A peek proposes
 * nothing, so it may be sent anywhere.
 */
import type { Unavailable } from '../api/answer.ts';
import type { Answer, UserAnswer, UserRequest } from '../api/user-request.ts';
import { NO_NODE, type NodeId } from '../../raft/types.ts';
import { isAnswerTo, isRejection, meaningOf } from './answer-meaning.ts';

/** An answer may be this late, as ticks come about this often. */
const LATE_ANSWER_MILLIS_MAX = 20;
const TOO_LATE: Unavailable = { kind: 'unavailable', reason: 'deadline', proposed: true };
const UNKNOWN: Unavailable = { kind: 'unavailable', reason: 'unknown_outcome', proposed: true };

/** What `OpenRequest` needs. */
export interface OpenRequestInit {
  readonly request: UserRequest;
  readonly partition: number;
  readonly deadlineMillis: number;
  /** A probe of this node itself; no caller waits for it. */
  readonly isOwn?: boolean;
  /** Called once with an answer that fits the request. */
  readonly done: (answer: never, partition: number) => void;
}

/** A request that has no answer yet. */
export class OpenRequest {
  readonly request: UserRequest;
  readonly partition: number;
  readonly deadlineMillis: number;
  /** A probe of this node itself; no caller waits for it. */
  readonly isOwn: boolean;
  #done: OpenRequestInit['done'] | undefined;
  #attempts = 0;
  #asked: NodeId = NO_NODE;
  /** An attempt may have reached a log, so the answer must not say that nothing was proposed. */
  #mayBeProposed = false;
  /** Attempts at nodes that became suspected; they may still be decided there. */
  #unansweredSends = 0;
  /** The outcome of some attempt is unknown for good. */
  #isLost = false;
  #isSettled = false;

  constructor({ request, partition, deadlineMillis, isOwn = false, done }: OpenRequestInit) {
    this.request = request;
    this.partition = partition;
    // Round down: a fractional number would be a heap object of its own.
    this.deadlineMillis = Math.floor(deadlineMillis);
    this.isOwn = isOwn;
    this.#done = done;
  }

  /** The request has its answer. */
  get isSettled(): boolean {
    return this.#isSettled;
  }

  /** The node that was asked last and has not answered; NO_NODE: the request waits for a leader. */
  get asked(): NodeId {
    return this.#asked;
  }

  /** Number of attempts so far. */
  get attempts(): number {
    return this.#attempts;
  }

  /** The request may be sent again while an earlier attempt may still be decided. */
  get isRepeatable(): boolean {
    const { request } = this;
    if (request.ask === 'customer') return request.action.type === 'read';
    return request.ask === 'peek' || request.requestId !== undefined;
  }

  get #isPeek(): boolean {
    return this.request.ask === 'peek';
  }

  /** Notes that `node` is asked now. Returns the number of this attempt. */
  attempt(node: NodeId): number {
    this.#attempts += 1;
    this.#asked = node;
    return this.#attempts;
  }

  /** Stops waiting for the node that was asked last; it may still decide. */
  sentAgain(): void {
    this.#mayBeProposed = true;
    this.#unansweredSends += 1;
    this.#asked = NO_NODE;
  }

  /** What an answer to an attempt leads to: the answer of the request, another attempt, or nothing yet. */
  verdictOn(attempt: number, answer: Answer, nowMillis: number): UserAnswer | 'askAgain' | undefined {
    const isLast = attempt === this.#attempts && this.#asked !== NO_NODE;
    if (isLast) this.#asked = NO_NODE;
    if (!isLast && !(answer.kind === 'unavailable' && answer.proposed)) this.#unansweredSends -= 1;
    if (isRejection(answer) && !this.#isPeek) {
      // The request was sent elsewhere meanwhile, and that node may still grant it.
      if (this.#asked !== NO_NODE) return undefined;
      // An attempt that was lost, or sent to a former leader, may still arrive and be granted when its window has
      // room again. It would count although the request was rejected (promise P4), so the answer is "unknown".
      if (this.#unansweredSends > 0 || this.#isLost) return UNKNOWN;
    }
    switch (answer.kind) {
      case 'decision':
      case 'refund':
      case 'keyStatus':
      case 'customer':
        if (!isAnswerTo(this.request, answer)) return UNKNOWN;
        // After a stall an answer may come before the tick that ends the request. It comes too late all the same
        // (promise P3).
        if (nowMillis > this.deadlineMillis + LATE_ANSWER_MILLIS_MAX) return TOO_LATE;
        return this.#mayBeProposed ? withoutRepeat(answer) : answer;
      case 'invalid':
      case 'conflict':
        return isAnswerTo(this.request, answer) ? answer : UNKNOWN;
      case 'notLeader':
        return isLast ? 'askAgain' : undefined;
      case 'unavailable': {
        if (answer.proposed) {
          this.#mayBeProposed = true;
          this.#isLost = true;
        }
        if (!isLast) return undefined;
        // Asking again is safe if nothing reached a log, or if the id makes it the same request.
        const isHarmless = !answer.proposed || this.isRepeatable;
        if (meaningOf(answer) === 'elsewhere' && isHarmless) return 'askAgain';
        return { ...answer, proposed: this.#mayBeProposed };
      }
    }
  }

  /** The answer when the deadline has come. */
  get overdue(): UserAnswer {
    // The asked node may have proposed the request; only an answer could exclude that.
    const isAsking = this.#asked !== NO_NODE;
    const reason = isAsking ? 'deadline' : 'no_leader';
    return { kind: 'unavailable', reason, proposed: this.#mayBeProposed || isAsking };
  }

  /** Answers the caller. Call it once. */
  settle(answer: UserAnswer): void {
    this.#isSettled = true;
    // A peek proposes nothing, so its refusal never says that something may have been proposed.
    const isPeekRefusal = this.#isPeek && answer.kind === 'unavailable';
    const done = this.#done;
    // `OpenRequests` keeps this object for a while; release the caller's closure now.
    this.#done = undefined;
    done?.((isPeekRefusal ? { ...answer, proposed: false } : answer) as never, this.partition);
  }
}

/**
 * Removes `isRepeat`: the grant may belong to another attempt of this very request, so its reservations must not be
 * given back.
 */
function withoutRepeat<A extends Answer>(answer: A): A {
  if (answer.kind !== 'decision' || answer.isRepeat === undefined) return answer;
  const { kind, decision } = answer;
  return { kind, decision } as A;
}

/** All unanswered requests of a router. Finds those whose deadline has come. */
export class OpenRequests {
  /** In order of their deadlines. Most requests have the same timeout, so they can be appended. */
  #usual: OpenRequest[] = [];
  /** Requests with a shorter timeout. */
  #others: OpenRequest[] = [];

  /** Adds a request. */
  add(open: OpenRequest): void {
    const last = this.#usual.at(-1);
    const isUsual = last === undefined || open.deadlineMillis >= last.deadlineMillis;
    (isUsual ? this.#usual : this.#others).push(open);
  }

  *[Symbol.iterator](): Iterator<OpenRequest> {
    yield* this.#usual;
    yield* this.#others;
  }

  /** Removes and returns the requests whose deadline has come; also drops those that were settled. */
  takeDue(nowMillis: number): OpenRequest[] {
    const due: OpenRequest[] = [];
    let count = 0;
    for (const open of this.#usual) {
      if (!open.isSettled && open.deadlineMillis > nowMillis) break;
      count += 1;
      if (!open.isSettled) due.push(open);
    }
    if (count > 0) this.#usual.splice(0, count);
    if (this.#others.length === 0) return due;
    const left: OpenRequest[] = [];
    for (const open of this.#others) {
      if (open.isSettled) continue;
      if (open.deadlineMillis > nowMillis) left.push(open);
      else due.push(open);
    }
    this.#others = left;
    return due;
  }
}
