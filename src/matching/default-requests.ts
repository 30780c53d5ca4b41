/**
 * Requests that name no rule and are by the default one, where no document says which limits they are under. Whether one does, a node
 * may hear late: so each says by which rules it was taken for one of these, and what decides by others refuses it. Then it is asked
 * again with the next tick, by what this node knows then. It keeps no grants and judges nothing.
 */
import type { AllowDone } from '../api/answer.ts';
import type { AllowRequest } from '../api/request.ts';
import type { DescribedRequestsInit } from './described-requests-init.ts';
import { OVERLOADED, RULES_CHANGED, STARTING } from './refused-here.ts';
import { wantsOtherRules } from './share-outcome.ts';

export interface DefaultRequestsInit extends Pick<
  DescribedRequestsInit,
  'ask' | 'monotonicMillis' | 'doorMillis' | 'deadlineMillis' | 'waitingMax'
> {
  /** The version of those that this node knows; undefined: a document is in force; `starting`: it knows of none yet. */
  readonly rules: () => number | 'starting' | undefined;
}

interface Waiting {
  readonly request: AllowRequest;
  readonly deadlineMillis: number;
  readonly done: AllowDone;
}

export class DefaultRequests {
  readonly #init: DefaultRequestsInit;
  #waiting: Waiting[] = [];

  constructor(init: DefaultRequestsInit) {
    this.#init = init;
  }

  /** @param request well-formed, see `invalidIn`, and names no rule; `done` is told once */
  ask(request: AllowRequest, done: AllowDone): void {
    const { doorMillis, deadlineMillis } = this.#init;
    this.#ask({ request, deadlineMillis: doorMillis() + deadlineMillis, done });
  }

  tick(): void {
    const waiting = this.#waiting;
    this.#waiting = [];
    for (const each of waiting) this.#ask(each);
  }

  #ask(asked: Waiting): void {
    const { request, deadlineMillis, done } = asked;
    const matchedBy = this.#init.rules();
    if (matchedBy === 'starting') return done(STARTING, 0);
    // It was asked before the document came, and does not say what it is.
    if (matchedBy === undefined) return done(RULES_CHANGED, 0);
    this.#init.ask(
      { ...request, matchedBy },
      (answer, partition) => {
        if (wantsOtherRules(answer)) this.#again(asked, partition);
        else done(answer, partition);
      },
      deadlineMillis,
    );
  }

  #again(asked: Waiting, partition: number): void {
    const { monotonicMillis, waitingMax } = this.#init;
    if (monotonicMillis() >= asked.deadlineMillis) asked.done(RULES_CHANGED, partition);
    else if (this.#waiting.length >= waitingMax) asked.done(OVERLOADED, partition);
    else this.#waiting.push(asked);
  }
}
