/**
 * Rules in shadow. They are asked as rules that bind are, deny nothing, and nobody waits for them. What they decide is told to whoever
 * counts it, of requests that all other rules let through; what a rule took for another request is given back, as a denied request is
 * charged nowhere. Each rule is judged alone. It keeps nothing.
 */
import type { AskAnswer, WouldDeny } from '../api/question.ts';
import { GLOBAL_KEY } from '../api/key-text.ts';
import { UNMATCHED } from '../api/unmatched.ts';
import type { MatchedRequestsInit } from './matched-requests-init.ts';
import type { MatchedLimit } from './matched-limit.ts';
import type { Asking } from './open-request.ts';
import { reservationId, type Reservations, type Reserved } from './reservations.ts';
import type { RuleBook } from './rule-book.ts';
import { isAllowed, isGrant, sharesOf } from './share-outcome.ts';
import { requestFor } from './share-request.ts';

/** It counts by nothing, and no wait helps. */
const UNMATCHED_DENIAL: WouldDeny = { ruleId: UNMATCHED, key: GLOBAL_KEY, limit: 0, retryAfterMillis: 0 };

type Init = Pick<MatchedRequestsInit, 'ask' | 'newAttempt' | 'partitionOf' | 'tried'>;

export class Trials {
  readonly #init: Init;
  readonly #reservations: Pick<Reservations, 'release'>;

  constructor(init: Init, reservations: Pick<Reservations, 'release'>) {
    this.#init = init;
    this.#reservations = reservations;
  }

  /**
   * Listens to what the request is answered. The denials that are known by then go with it.
   *
   * @param rules of each that is in shadow: its windows
   * @returns asks the rules: to be called once the others were asked, for what these deny at once needs no trial
   */
  begin(rules: readonly (readonly MatchedLimit[])[], asking: Asking, book: RuleBook): () => void {
    const { request, deadlineMillis, done } = asking;
    const tried: Reserved[] = [];
    let isLetThrough: boolean | undefined;
    // It is charged there, and judged nowhere.
    const isSettled = request.settle === true;
    asking.done = (answer, partition) => {
      isLetThrough = letsThrough(answer);
      for (const one of tried) this.#end(one, isLetThrough, isSettled);
      const wouldDeny = isLetThrough ? tried.flatMap(denialIn) : [];
      done(wouldDeny.length === 0 ? answer : { ...answer, wouldDeny }, partition);
    };
    return () => {
      if (isLetThrough === false || asking.isDeniedHere) return;
      for (const share of rules.flatMap((windows) => sharesOf(windows, this.#init.partitionOf))) {
        const one: Reserved = {
          share,
          requestId: reservationId(this.#init.newAttempt(), share),
          answer: undefined,
        };
        tried.push(one);
        this.#init.ask(
          requestFor(share, request, one.requestId, book),
          (answer) => {
            one.answer = answer;
            if (isLetThrough !== undefined) this.#end(one, isLetThrough, isSettled);
          },
          deadlineMillis,
        );
      }
    };
  }

  /** Where the document would deny what no rule is for. Whether one is, is known when the request is answered. */
  listenForUnmatched(asking: Asking): void {
    const { done } = asking;
    asking.done = (answer, partition) => {
      if (asking.unmatched === undefined || !letsThrough(answer)) return done(answer, partition);
      this.#init.tried(UNMATCHED, false);
      done({ ...answer, wouldDeny: [...(answer.wouldDeny ?? []), UNMATCHED_DENIAL] }, partition);
    };
  }

  /** Both the request and this rule of it are answered, or the rule is still to answer. */
  #end(one: Reserved, isLetThrough: boolean, isSettled: boolean): void {
    const { answer } = one;
    if (!isLetThrough) this.#reservations.release([one]);
    else if (!isSettled && answer?.kind === 'decision' && answer.decision.isBlocked !== true)
      this.#init.tried(answer.decision.ruleId, isGrant(answer));
  }
}

/** A grant to an earlier attempt was tried with that. */
function letsThrough(answer: AskAnswer): boolean {
  return isAllowed(answer) && !(answer.kind === 'decision' && answer.isRepeat === true);
}

function denialIn({ answer, share }: Reserved): WouldDeny[] {
  if (answer?.kind !== 'decision' || answer.decision.allowed || answer.decision.isBlocked === true) return [];
  const { ruleId, limit, retryAfterMillis } = answer.decision;
  return [{ ruleId, key: share.limits[0].userId, limit, retryAfterMillis }];
}
