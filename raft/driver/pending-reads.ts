/** The linearizable reads of one group that wait: for the next turn, for a quorum, or for entries to be applied. */
import type { RaftCore } from '../core.ts';
import type { ReadDone } from './group-application.ts';

/** More waiting reads per group are refused. */
const READS_WAITING_MAX = 65_536;

/** The reads of one group. */
export class PendingReads {
  readonly #core: RaftCore;
  /** Reads since the last turn. */
  #asked: ReadDone[] = [];
  /** Reads that wait for a quorum, by the core's ticket. */
  readonly #byTicket = new Map<number, readonly ReadDone[]>();
  /** Confirmed reads that wait until the index is applied. Indexes ascend. */
  readonly #due: { readonly index: number; readonly done: readonly ReadDone[] }[] = [];
  /** The number of reads in `#byTicket` and `#due`. */
  #waiting = 0;

  constructor(core: RaftCore) {
    this.#core = core;
  }

  /** Whether reads wait for the next turn. */
  get isAsked(): boolean {
    return this.#asked.length > 0;
  }

  /** Adds a read. */
  ask(done: ReadDone): void {
    this.#asked.push(done);
  }

  /** Makes one leadership check for all reads since the last turn. */
  start(): void {
    if (this.#asked.length === 0) return;
    const asked = this.#asked;
    const room = READS_WAITING_MAX - this.#waiting;
    this.#asked = [];
    const ticket = this.#core.requestRead();
    const accepted = ticket === undefined ? [] : asked.splice(0, room);
    if (ticket !== undefined) {
      this.#byTicket.set(ticket, accepted);
      this.#waiting += accepted.length;
    }
    for (const done of asked) done(undefined);
  }

  /** Answers the reads that a quorum has confirmed and whose index is applied. */
  finish(): void {
    for (const { ticket, index } of this.#core.takeReads()) {
      const done = this.#byTicket.get(ticket);
      if (done !== undefined) this.#due.push({ index, done });
      this.#byTicket.delete(ticket);
    }
    let count = 0;
    for (const { index, done } of this.#due) {
      if (index > this.#core.applied) break;
      count += 1;
      this.#waiting -= done.length;
      for (const each of done) each(index);
    }
    this.#due.splice(0, count);
  }

  /** The group leaves this node: answers all reads with undefined. */
  close(): void {
    this.fail();
    for (const { done } of this.#due.splice(0)) for (const each of done) each(undefined);
    for (const done of this.#asked.splice(0)) done(undefined);
  }

  /** The leadership ended, so its unconfirmed reads get no index: answers them with undefined. */
  fail(): void {
    this.finish();
    for (const done of this.#byTicket.values()) {
      this.#waiting -= done.length;
      for (const each of done) each(undefined);
    }
    this.#byTicket.clear();
  }
}
