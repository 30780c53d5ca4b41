/**
 * Questions to other nodes, each under an id that its answer bears: who was asked what, and what the asker is told if no
 * answer comes. It neither sends frames nor reads them, nor a clock.
 *
 * Whoever asks is told once, or never if the time of a call ends and late answers are waited for:
 * - what was answered, if the node that was asked says so; nobody else is believed;
 * - `notSent`, if the question never left: certainly nothing came of it;
 * - `lost`, if it left, and the connection broke before the answer: nobody knows what came of it.
 */
import type { NodeId } from '../../raft/types.ts';
import { ById } from './by-id.ts';

export interface CallsInit<Result> {
  /** Where ids start; random, so that answers meant for an earlier process of this node match nothing. */
  readonly firstId: number;
  /** Calls under way at a time. */
  readonly outstandingMax: number;
  /** Of calls whose time ended, so many are remembered, for what a late answer tells. None: then they are `lost`. */
  readonly lateMax: number;
  readonly notSent: (to: NodeId) => Result;
  readonly lost: Result;
  /** A call to this node waits no more, whoever ended that. */
  readonly ended?: (to: NodeId) => void;
}

export interface Question<Result> {
  readonly to: NodeId;
  readonly done: (result: Result) => void;
}

export interface Call<Asked> {
  readonly id: number;
  readonly question: Asked;
  /** Its deadline, on the clock whose time is given to `expire`. */
  readonly until: number;
  /** A connection took the question: it may arrive. */
  isSent: boolean;
}

export class Calls<Asked extends Question<Result>, Result> {
  readonly #init: CallsInit<Result>;
  /** In the order of asking. */
  readonly #outstanding: ById<Call<Asked>>;
  /** Past their time, oldest first. */
  readonly #late = new Map<number, Call<Asked>>();

  constructor(init: CallsInit<Result>) {
    this.#init = init;
    this.#outstanding = new ById(init.firstId);
  }

  get outstandingCount(): number {
    return this.#outstanding.size;
  }

  /** A new call, to be sent. Undefined: too many are under way, and nobody is told anything. */
  maybeAsk(question: Asked, until: number): Call<Asked> | undefined {
    if (this.#outstanding.size >= this.#init.outstandingMax) return undefined;
    const call = { id: this.#outstanding.nextId, question, until, isSent: false };
    this.#outstanding.add(call);
    return call;
  }

  /** `from` answered. */
  answered(from: NodeId, id: number, result: Result): void {
    const call = this.#outstanding.get(id) ?? this.#late.get(id);
    if (call?.question.to === from) this.#end(call, result);
  }

  /** The frame did not leave. */
  notSent(call: Call<Asked>): void {
    this.#end(call, this.#init.notSent(call.question.to));
  }

  /** The connection to `peer` broke. */
  disconnected(peer: NodeId): void {
    const calls = this.#outstanding.values.filter(({ question }) => question.to === peer);
    const sent = calls.filter(({ isSent }) => isSent);
    // Whoever is told may ask here again at once, and that is none of these.
    for (const call of calls) if (!call.isSent) this.notSent(call);
    for (const call of sent) this.#end(call, this.#init.lost);
    for (const [id, { question }] of this.#late) if (question.to === peer) this.#late.delete(id);
  }

  /** It is `now`. Calls are taken to end in the order of asking: one that ends sooner waits for those before it. */
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
