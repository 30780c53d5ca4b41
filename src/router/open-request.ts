/**
 * One request between its door and its answer: which nodes were asked, and what their answers add up to. It asks nobody
 * itself, and knows of no leader.
 *
 * What is asked of a second node may have been proposed by the first: so only a request with an id, which makes a
 * repeat the same request, is ever asked in two places, and it is rejected only if none of them may grant it yet. A look
 * is asked wherever it may be answered: nobody proposes anything for it.
 */
import type { Unavailable } from '../api/answer.ts';
import type { Answer, UserAnswer, UserRequest } from '../api/user-request.ts';
import { NO_NODE, type NodeId } from '../../raft/types.ts';
import { isAnswerTo, isRejection, meaningOf } from './answer-meaning.ts';

/** Ticks are about this coarse; an answer this little past its deadline still counts. */
const LATE_ANSWER_MILLIS_MAX = 20;
const TOO_LATE: Unavailable = { kind: 'unavailable', reason: 'deadline', proposed: true };
const UNKNOWN: Unavailable = { kind: 'unavailable', reason: 'unknown_outcome', proposed: true };

export interface OpenRequestInit {
  readonly request: UserRequest;
  readonly partition: number;
  readonly deadlineMillis: number;
  /** No caller waits for it: its node asks for itself. */
  readonly isOwn?: boolean;
  /** Told what answers a request of this kind, and nothing else. */
  readonly done: (answer: never, partition: number) => void;
}

export class OpenRequest {
  readonly request: UserRequest;
  readonly partition: number;
  readonly deadlineMillis: number;
  /** No caller waits for it. */
  readonly isOwn: boolean;
  #done: OpenRequestInit['done'] | undefined;
  #attempts = 0;
  #asked: NodeId = NO_NODE;
  /** An attempt may have reached a log, so "nothing was proposed" can no longer be claimed. */
  #mayBeProposed = false;
  /** Attempts at nodes that were suspected meanwhile, and may still be decided there. */
  #astray = 0;
  /** An attempt ended, and nobody knows how. */
  #isLost = false;
  #isSettled = false;

  constructor({ request, partition, deadlineMillis, isOwn = false, done }: OpenRequestInit) {
    this.request = request;
    this.partition = partition;
    // Whole milliseconds: every other number would be an object of its own, wherever it is kept.
    this.deadlineMillis = Math.floor(deadlineMillis);
    this.isOwn = isOwn;
    this.#done = done;
  }

  /** Has its answer. */
  get isSettled(): boolean {
    return this.#isSettled;
  }

  /** The node that was asked last and has not answered; NO_NODE: it waits for a leader. */
  get asked(): NodeId {
    return this.#asked;
  }

  get attempts(): number {
    return this.#attempts;
  }

  /** May be asked again while an earlier attempt may still be decided. */
  get isRepeatable(): boolean {
    const { request } = this;
    if (request.ask === 'customer') return request.action.type === 'read';
    return request.ask === 'look' || request.requestId !== undefined;
  }

  get #isLook(): boolean {
    return this.request.ask === 'look';
  }

  /** `node` is asked now. Returns the number of this attempt. */
  attempt(node: NodeId): number {
    this.#attempts += 1;
    this.#asked = node;
    return this.#attempts;
  }

  /** The node that was asked last is not waited for any more, and may still decide. */
  strayed(): void {
    this.#mayBeProposed = true;
    this.#astray += 1;
    this.#asked = NO_NODE;
  }

  /** What an answer to an attempt comes to: the answer of the request, another attempt, or nothing yet. */
  verdictOn(attempt: number, answer: Answer, nowMillis: number): UserAnswer | 'askAgain' | undefined {
    const isLast = attempt === this.#attempts && this.#asked !== NO_NODE;
    if (isLast) this.#asked = NO_NODE;
    if (!isLast && !(answer.kind === 'unavailable' && answer.proposed)) this.#astray -= 1;
    if (isRejection(answer) && !this.#isLook) {
      // It is asked elsewhere again: whoever has it now may still grant it.
      if (this.#asked !== NO_NODE) return undefined;
      // What went astray, or was lost with its connection, may arrive yet, and be granted when its window has room again:
      // then it would count although it was rejected (P4).
      if (this.#astray > 0 || this.#isLost) return UNKNOWN;
    }
    switch (answer.kind) {
      case 'decision':
      case 'refund':
      case 'standing':
      case 'customer':
        if (!isAnswerTo(this.request, answer)) return UNKNOWN;
        // After a stall an answer may come before the tick that would have refused: late is late (P3).
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
        // A repeat is harmless if nothing reached the log, or if an id makes it the same request.
        const isHarmless = !answer.proposed || this.isRepeatable;
        if (meaningOf(answer) === 'elsewhere' && isHarmless) return 'askAgain';
        return { ...answer, proposed: this.#mayBeProposed };
      }
    }
  }

  /** Its answer at the deadline. */
  get overdue(): UserAnswer {
    // Whoever has it may have proposed it: only an answer could say that nothing happened.
    const isAsking = this.#asked !== NO_NODE;
    const reason = isAsking ? 'deadline' : 'no_leader';
    return { kind: 'unavailable', reason, proposed: this.#mayBeProposed || isAsking };
  }

  settle(answer: UserAnswer): void {
    this.#isSettled = true;
    const isDoubtless = this.#isLook && answer.kind === 'unavailable';
    const done = this.#done;
    // `OpenRequests` keeps this object until those before it are settled; the caller's closure need not stay as long.
    this.#done = undefined;
    done?.((isDoubtless ? { ...answer, proposed: false } : answer) as never, this.partition);
  }
}

/** Of who asked twice it may be the grant: what belongs to that must not be given back as if somebody else had it. */
function withoutRepeat<A extends Answer>(answer: A): A {
  if (answer.kind !== 'decision' || answer.isRepeat === undefined) return answer;
  const { kind, decision } = answer;
  return { kind, decision } as A;
}
