/** All requests of a router that have no answer yet, and which of them are due. It settles none itself. */
import type { OpenRequest } from './open-request.ts';

export class OpenRequests {
  /** In order of their deadlines: most have as much time as those before them. */
  #usual: OpenRequest[] = [];
  /** Those that have less. */
  #others: OpenRequest[] = [];

  add(open: OpenRequest): void {
    const last = this.#usual.at(-1);
    const isUsual = last === undefined || open.deadlineMillis >= last.deadlineMillis;
    (isUsual ? this.#usual : this.#others).push(open);
  }

  *[Symbol.iterator](): Iterator<OpenRequest> {
    yield* this.#usual;
    yield* this.#others;
  }

  /** Takes out those whose deadline has come, and forgets those that were settled meanwhile. */
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
