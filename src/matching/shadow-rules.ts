/**
 * Asks shadow rules. They are asked like other rules, but deny nothing, and the answer does not wait for them.
 * Their decisions are counted if all other rules let the request through. If not, their grants are given back, as
 * a denied request is charged nowhere. Each shadow rule is decided alone.
 */
import type { AskAnswer, WouldDeny } from '../api/question.ts';
import { GLOBAL_KEY } from '../api/key-text.ts';
import { UNMATCHED } from '../api/refusals.ts';
import type { MatchedRequestsInit } from './matched-requests-init.ts';
import type { MatchedLimit } from './matched-limit.ts';
import type { Asking } from './open-request.ts';
import { reservationId, type Reservations, type Reserved } from './reservations.ts';
import type { RuleSet } from './rule-set.ts';
import { isAllowed, isGrant, partsOfRequest } from './part-outcome.ts';
import { requestFor } from './part-request.ts';

/** Reported for requests that no rule matches: there is no limit, and no wait helps. */
const UNMATCHED_DENIAL: WouldDeny = { ruleId: UNMATCHED, key: GLOBAL_KEY, limit: 0, retryAfterMillis: 0 };

type Init = Pick<MatchedRequestsInit, 'ask' | 'newAttempt' | 'partitionOf' | 'tried'>;

/** The shadow rules of one node. It stores nothing. */
export class ShadowRules {
  readonly #init: Init;
  readonly #reservations: Pick<Reservations, 'release'>;

  constructor(init: Init, reservations: Pick<Reservations, 'release'>) {
    this.#init = init;
    this.#reservations = reservations;
  }

  /**
   * Wraps the request's `done`, so that the answer lists the shadow denials that are known by then.
   *
   * @param rules the windows of each shadow rule
   * @returns a function that asks the shadow rules. Call it after the other rules were asked: if they denied at
   *   once, it asks nothing.
   */
  begin(rules: readonly (readonly MatchedLimit[])[], asking: Asking, ruleSet: RuleSet): () => void {
    const { request, deadlineMillis, done } = asking;
    const tried: Reserved[] = [];
    let isLetThrough: boolean | undefined;
    // A settlement is charged under shadow rules too, but says nothing about what they would deny.
    const isSettled = request.settle === true;
    asking.done = (answer, partition) => {
      isLetThrough = letsThrough(answer);
      for (const one of tried) this.#end(one, isLetThrough, isSettled);
      const wouldDeny = isLetThrough ? tried.flatMap(denialIn) : [];
      done(wouldDeny.length === 0 ? answer : { ...answer, wouldDeny }, partition);
    };
    return () => {
      if (isLetThrough === false || asking.isDeniedHere) return;
      for (const part of rules.flatMap((windows) => partsOfRequest(windows, this.#init.partitionOf))) {
        const one: Reserved = {
          part,
          requestId: reservationId(this.#init.newAttempt(), part),
          answer: undefined,
        };
        tried.push(one);
        this.#init.ask(
          requestFor(part, request, one.requestId, ruleSet),
          (answer) => {
            one.answer = answer;
            if (isLetThrough !== undefined) this.#end(one, isLetThrough, isSettled);
          },
          deadlineMillis,
        );
      }
    };
  }

  /**
   * For rules whose `unmatched` is in shadow: reports the denial of a request that no rule matches. Whether any
   * matches is known when the request is answered.
   */
  listenForUnmatched(asking: Asking): void {
    const { done } = asking;
    asking.done = (answer, partition) => {
      if (asking.unmatched === undefined || !letsThrough(answer)) return done(answer, partition);
      this.#init.tried(UNMATCHED, false);
      done({ ...answer, wouldDeny: [...(answer.wouldDeny ?? []), UNMATCHED_DENIAL] }, partition);
    };
  }

  /** Called when both the request and this shadow rule are answered, or the request alone was. */
  #end(one: Reserved, isLetThrough: boolean, isSettled: boolean): void {
    const { answer } = one;
    if (!isLetThrough) this.#reservations.release([one]);
    else if (!isSettled && answer?.kind === 'decision' && answer.decision.isBlocked !== true)
      this.#init.tried(answer.decision.ruleId, isGrant(answer));
  }
}

/** A repeated grant was counted by the shadow rules when it was first made. */
function letsThrough(answer: AskAnswer): boolean {
  return isAllowed(answer) && !(answer.kind === 'decision' && answer.isRepeat === true);
}

function denialIn({ answer, part }: Reserved): WouldDeny[] {
  if (answer?.kind !== 'decision' || answer.decision.allowed || answer.decision.isBlocked === true) return [];
  const { ruleId, limit, retryAfterMillis } = answer.decision;
  return [{ ruleId, key: part.limits[0].userId, limit, retryAfterMillis }];
}
