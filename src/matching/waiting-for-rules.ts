/** Requests that wait for the next tick: this node and a partition know different rules, or other records of a customer, and one of them is about to learn the newer ones. */
import type { MatchedRequestsInit } from './matched-requests-init.ts';
import { outdated, OVERLOADED } from './node-refusals.ts';
import { type Asking, beginAgain } from './open-request.ts';

type Init = Pick<MatchedRequestsInit, 'monotonicMillis' | 'waitingMax'>;

export class WaitingForRules {
  readonly #init: Init;
  #waiting: Asking[] = [];

  constructor(init: Init) {
    this.#init = init;
  }

  /** It waits, or is refused: its deadline is over, or too many wait. */
  add(asking: Asking, partition: number): void {
    const { monotonicMillis, waitingMax } = this.#init;
    if (monotonicMillis() >= asking.deadlineMillis) asking.done(outdated(asking), partition);
    else if (this.#waiting.length >= waitingMax) asking.done(OVERLOADED, partition);
    else {
      beginAgain(asking);
      this.#waiting.push(asking);
    }
  }

  /** All that wait: they are to be asked again. */
  takeAll(): readonly Asking[] {
    const waiting = this.#waiting;
    this.#waiting = [];
    return waiting;
  }
}
