/** The linearizable reads of one group that wait: to be asked about, for a quorum, or for entries to be applied. */
import type { RaftCore } from '../core.ts';
import type { ReadDone } from './group-application.ts';

/** More of one group are refused. */
const READS_WAITING_MAX = 65_536;

export class PendingReads {
  readonly #core: RaftCore;
  /** Came since the last turn. */
  #asked: ReadDone[] = [];
  /** By ticket of the core. */
  readonly #byTicket = new Map<number, readonly ReadDone[]>();
  /** Confirmed: wait until the index is applied. Indexes do not decrease. */
  readonly #due: { readonly index: number; readonly done: readonly ReadDone[] }[] = [];
  /** In `#byTicket` and `#due`. */
  #waiting = 0;

  constructor(core: RaftCore) {
    this.#core = core;
  }

  ask(done: ReadDone): void {
    this.#asked.push(done);
  }

  /** One question for all that came since the last turn. */
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

  /** Answers those that a quorum has confirmed and whose index is applied. */
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

  /** The group leaves this node. */
  close(): void {
    this.fail();
    for (const { done } of this.#due.splice(0)) for (const each of done) each(undefined);
    for (const done of this.#asked.splice(0)) done(undefined);
  }

  /** The questions of a term that is over will never be answered. */
  fail(): void {
    this.finish();
    for (const done of this.#byTicket.values()) {
      this.#waiting -= done.length;
      for (const each of done) each(undefined);
    }
    this.#byTicket.clear();
  }
}
