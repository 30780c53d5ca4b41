/**
 * Open calls to other nodes. Each call has an id that its answer repeats. This class keeps track of them; it sends
 * and reads nothing.
 *
 * `done` of a call is called once, with
 * - the answer, if it comes from the node that was asked
 * - `notSent`, if the question was never sent, so it has no effect
 * - `lost`, if it was sent and the connection broke before the answer, so its effect is unknown
 *
 * It is never called if the call expired, this instance keeps expired calls for late answers (`lateMax`), and none
 * arrives.
 */
import type { NodeId } from '../../raft/types.ts';
import { ById } from './by-id.ts';

/** What `Calls` needs. */
export interface CallsInit<Result> {
  /** First id. It is random, so that answers to an earlier process of this node match no call. */
  readonly firstId: number;
  /** The maximum number of open calls. */
  readonly outstandingMax: number;
  /** The maximum number of expired calls that are kept for late answers. 0: expired calls are `lost`. */
  readonly lateMax: number;
  readonly notSent: (to: NodeId) => Result;
  readonly lost: Result;
  /** Called when a call to this node is not open any more, for any reason. */
  readonly ended?: (to: NodeId) => void;
}

/** A question to a node; `done` gets the result. */
export interface Question<Result> {
  readonly to: NodeId;
  readonly done: (result: Result) => void;
}

/** An open call. */
export interface Call<Asked> {
  readonly id: number;
  readonly question: Asked;
  /** Deadline, on the clock that is given to `expire`. */
  readonly until: number;
  /** The question was written to a connection, so it may arrive. */
  isSent: boolean;
}

/** The open calls of one kind. */
export class Calls<Asked extends Question<Result>, Result> {
  readonly #init: CallsInit<Result>;
  /** In the order of asking. */
  readonly #outstanding: ById<Call<Asked>>;
  /** Expired calls, oldest first. */
  readonly #late = new Map<number, Call<Asked>>();

  constructor(init: CallsInit<Result>) {
    this.#init = init;
    this.#outstanding = new ById(init.firstId);
  }

  /** Number of open calls. */
  get outstandingCount(): number {
    return this.#outstanding.size;
  }

  /** Creates a call that the caller has to send. Undefined: too many are open; `done` is not called. */
  maybeAsk(question: Asked, until: number): Call<Asked> | undefined {
    if (this.#outstanding.size >= this.#init.outstandingMax) return undefined;
    const call = { id: this.#outstanding.nextId, question, until, isSent: false };
    this.#outstanding.add(call);
    return call;
  }

  /** An answer arrived from `from`. */
  answered(from: NodeId, id: number, result: Result): void {
    const call = this.#outstanding.get(id) ?? this.#late.get(id);
    if (call?.question.to === from) this.#end(call, result);
  }

  /** The question could not be sent. */
  notSent(call: Call<Asked>): void {
    this.#end(call, this.#init.notSent(call.question.to));
  }

  /** The connection to `peer` broke. */
  disconnected(peer: NodeId): void {
    const calls = this.#outstanding.values.filter(({ question }) => question.to === peer);
    const sent = calls.filter(({ isSent }) => isSent);
    // A `done` may open a new call to this peer, which must not be ended here.
    for (const call of calls) if (!call.isSent) this.notSent(call);
    for (const call of sent) this.#end(call, this.#init.lost);
    for (const [id, { question }] of this.#late) if (question.to === peer) this.#late.delete(id);
  }

  /**
   * Ends expired calls. Calls are expected to expire in the order of asking; one that expires sooner waits for
   * those before it.
   */
  expire(now: number): void {
    const { lateMax, lost, ended } = this.#init;
    for (let call = this.#outstanding.first; call !== undefined; call = this.#outstanding.first) {
      if (call.until > now) break;
      if (lateMax === 0) {
        this.#end(call, lost);
        continue;
      }
      this.#outstanding.delete(call.id);
      ended?.(call.question.to);
      this.#late.set(call.id, call);
    }
    for (const id of this.#late.keys()) {
      if (this.#late.size <= lateMax) break;
      this.#late.delete(id);
    }
  }

  #end({ id, question }: Call<Asked>, result: Result): void {
    const wasOutstanding = this.#outstanding.delete(id);
    if (wasOutstanding) this.#init.ended?.(question.to);
    if (!wasOutstanding && !this.#late.delete(id)) return;
    question.done(result);
  }
}
