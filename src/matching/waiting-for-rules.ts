/**
 * Keeps requests until the next tick because this node and a partition have different rules or customer records.
 * One of the two is about to learn the newer ones.
 */
import type { MatchedRequestsInit } from './matched-requests-init.ts';
import { outdated, OVERLOADED } from './node-refusals.ts';
import { type Asking, beginAgain } from './open-request.ts';

type Init = Pick<MatchedRequestsInit, 'monotonicMillis' | 'waitingMax'>;

/** The requests that wait on one node. */
export class WaitingForRules {
  readonly #init: Init;
  #waiting: Asking[] = [];

  constructor(init: Init) {
    this.#init = init;
  }

  /** Lets a request wait, or refuses it if its deadline has passed or too many wait. */
  add(asking: Asking, partition: number): void {
    const { monotonicMillis, waitingMax } = this.#init;
    if (monotonicMillis() >= asking.deadlineMillis) asking.done(outdated(asking), partition);
    else if (this.#waiting.length >= waitingMax) asking.done(OVERLOADED, partition);
    else {
      beginAgain(asking);
      this.#waiting.push(asking);
    }
  }

  /** Removes and returns all that wait; they have to be asked again. */
  takeAll(): readonly Asking[] {
    const waiting = this.#waiting;
    this.#waiting = [];
    return waiting;
  }
}
