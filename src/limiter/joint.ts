/**
 * A request under several limits: either all limits grant it, or none is charged. Each limit is judged by `Judgement`;
 * this file combines the results. Only `grant` changes the state.
 */

import type { LimitStatus } from '../api/answer.ts';
import { jointDenial, jointGrant, limitStatusOf } from '../api/joint-answer.ts';
import type { AllowRequest, FurtherLimit } from '../api/request.ts';
import type { Decision } from './decision.ts';
import { Judgement } from './judge.ts';
import { type Outcome, type Question, questionOf } from './question.ts';
import type { DecidedAt } from './decisions-without-limit.ts';
import type { Inherited } from './state/inheritance.ts';
import { broughtBy } from './state/inherited-runs.ts';
import type { KeyTable } from './state/key-table.ts';
import type { LimiterState } from './state/limiter-state.ts';
import type { Room } from './state/state-size.ts';

/** Finds the keys of a rule; undefined if there is no such rule. */
type KeysFor = (ruleId: string) => KeyTable | undefined;

/** Judges and grants requests under several limits. One object is reused for many requests. */
export class JointJudgement {
  readonly #judgement = new Judgement();
  outcome: Outcome = 'fits';
  /** Undefined if the request fits. */
  #answer: Decision | undefined;
  /** Grants that keys inherit from other windows of their rule. They are found before any key is charged. */
  readonly #heirs: { readonly userId: string; readonly inherited: Inherited }[] = [];

  /**
   * Judges the request in the order of `Judgement.judge`, each step for all limits. If several limits deny, the answer
   * is the denial with the longest wait.
   */
  judge(
    state: LimiterState,
    request: AllowRequest,
    at: { readonly now: number; readonly room: Room; readonly place: DecidedAt; readonly keysFor?: KeysFor },
  ): Outcome {
    const { now, room, place, keysFor = (ruleId) => state.keysFor(ruleId) } = at;
    const judgement = this.#judgement;
    const question = questionOf(request);
    state.lookUp(request);
    if (judgement.isRepeated(state, question, now)) return this.#refuse('repeated', state, question, place);
    if (judgement.isRefusedByGuard(state, question))
      return this.#refuse(judgement.outcome, state, question, place);
    const denials: Decision[] = [];
    const limitStatuses: LimitStatus[] = [];
    let bytes = 0;
    let hasRoom = true;
    this.#heirs.length = 0;
    for (const [i, limit] of limitsOf(request).entries()) {
      const asked = ofLimit(question, limit);
      const keys = keysFor(limit.ruleId);
      if (i === 0) state.lookUp(request);
      else state.lookUpFurther(limit.userId);
      judgement.findRecord(state, now);
      if (judgement.isBlocked && !asked.isSettled) return this.#refuse('blocked', state, asked, place);
      judgement.outcome = 'unknown_rule';
      if (keys === undefined) return this.#refuse('unknown_rule', state, asked, place);
      judgement.judgeKey(state.name, keys, asked, now);
      const { inherited } = judgement;
      if (inherited !== undefined) this.#heirs.push({ userId: limit.userId, inherited });
      const denial = judgement.denial(place);
      if (judgement.isDenied) denials.push(denial);
      limitStatuses.push(limitStatusOf(denial));
      hasRoom &&= state.hasRoomFor(judgement, question.hasRequestId, room, bytes);
      bytes += state.bytesFor(judgement, question.hasRequestId);
    }
    if (denials.length > 0) {
      this.#answer = jointDenial(denials, limitStatuses);
      return (this.outcome = 'denied');
    }
    if (!hasRoom) return this.#refuse('at_capacity', state, question, place);
    return (this.outcome = 'fits');
  }

  #refuse(outcome: Outcome, state: LimiterState, question: Question, place: DecidedAt): Outcome {
    this.#judgement.outcome = outcome;
    this.#answer = this.#judgement.answer(state, question, place);
    return (this.outcome = outcome);
  }

  /** The answer to a request that does not fit. */
  get answer(): Decision {
    return this.#answer!;
  }

  /** Grants a request that fits, under all its limits. @param place the position of the request's first row */
  grant(state: LimiterState, request: AllowRequest, place: DecidedAt, keysFor: KeysFor): Decision {
    const judgement = this.#judgement;
    const question = questionOf(request);
    const now = state.applied.timeMillis;
    const grants: Decision[] = [];
    // Read everything before recording anything: new windows of one request may inherit from each other.
    const brought = this.#heirs.map(({ inherited }) => broughtBy(inherited));
    for (const [i, { userId, inherited }] of this.#heirs.entries()) {
      state.name.set(userId);
      state.inherit(inherited, brought[i]);
    }
    for (const [i, limit] of limitsOf(request).entries()) {
      const keys = keysFor(limit.ruleId)!;
      const asked = ofLimit(question, limit);
      const own = { ...place, position: place.position! + i };
      if (i === 0) state.lookUp(request);
      else state.lookUpFurther(limit.userId);
      judgement.findRecord(state, now);
      judgement.judgeKey(state.name, keys, asked, now, true);
      state.keep(keys);
      const grant = judgement.grant(keys.grant(judgement, state.name, now, place.index), own);
      if (question.hasRequestId) {
        state.ruleId.set(keys.rule.id);
        state.remember(grant, asked, keys.meterKind);
      }
      grants.push(grant);
    }
    state.changedMillis = now;
    return jointGrant(grants);
  }
}

/** The limits of the request, in its own order. */
function limitsOf({
  userId,
  ruleId = '',
  cost,
  settle,
  further = [],
}: AllowRequest): readonly FurtherLimit[] {
  return [{ userId, ruleId, cost, settle }, ...further];
}

function ofLimit(question: Question, { ruleId, cost = 1, settle }: FurtherLimit): Question {
  return { ...question, ruleId, cost, isSettled: settle === true };
}
