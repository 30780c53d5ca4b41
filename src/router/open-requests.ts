/** Holds all unanswered requests of a router and finds those whose deadline has come. */
import type { OpenRequest } from './open-request.ts';

/** The unanswered requests. */
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
