/**
 * The one judgement: may a request be granted, given what its key was granted so far? The log, the quick denial and
 * nobody else ask it. It changes nothing, and reads no clock: the time is part of the question.
 */

import type { Decision, Receipt, Refusal } from './decision.ts';
import type { Conflict, Fingerprint } from './fingerprint.ts';
import type { AllowRequest } from '../api/request.ts';
import type { KeyTable } from './state/key-table.ts';
import { NONE } from './state/rows.ts';

/** One request, as it is asked. */
export interface Question extends Fingerprint {
  readonly userId: string;
  readonly requestId: string | undefined;
}

export function questionOf({ userId, ruleId, cost, timestampMillis, requestId }: AllowRequest): Question {
  return { userId, ruleId: ruleId ?? '', cost: cost ?? 1, timestampMillis, requestId };
}

/** Where a decision is made. Without a position it is read from the state after the whole entry. */
export interface Place {
  readonly term: number;
  readonly index: number;
  readonly position: number | undefined;
}

export function receiptAt({ term, index, position }: Place, timeMillis: number): Receipt {
  return position === undefined ? { term, index, timeMillis } : { term, index, position, timeMillis };
}

/** A request that no limit judged. */
export function refusalOf(refusal: Refusal, ruleId: string, decided: Receipt, conflict?: Conflict): Decision {
  return {
    allowed: false,
    ruleId,
    limit: 0,
    windowMillis: 0,
    remaining: 0,
    retryAfterMillis: 0,
    resetMillis: 0,
    decided,
    refusal,
    ...(conflict !== undefined && { conflict }),
  };
}

/** What was found out about a question. One object is used for many, one after the other. */
export class Judgement {
  #keys: KeyTable | undefined;
  /** The slot of its key, or `NONE`. */
  slot = NONE;
  /** Judged at a caller's timestamp. */
  isEvent = false;
  /** The time it asks for. */
  asked = 0;
  /** The time it is judged at. */
  t = 0;
  cost = 0;
  windowMillis = 0;
  /** What counts at `t`. */
  live = 0;
  /**
   * It is judged at another time than it asked for, and must be denied whatever is recorded:
   * - what its key was granted there may have been forgotten (`evictedThroughMillis`);
   * - it asks in group time and the key has grants ahead of it, stamped by a caller. Judged at those stamps it could
   *   be granted again and again as they move on, faster than real time.
   */
  isHeld = false;

  get keys(): KeyTable {
    return this.#keys!;
  }

  /** @param slot of the question's key in `keys`, or `NONE` */
  judge(keys: KeyTable, slot: number, { cost, timestampMillis }: Question, now: number): this {
    const { rule } = keys;
    this.#keys = keys;
    this.slot = slot;
    this.cost = cost;
    this.isEvent = timestampMillis !== undefined && rule.clock === 'request';
    this.asked = this.isEvent ? (timestampMillis ?? now) : now;
    this.windowMillis = this.isEvent ? rule.windowMillis : keys.effectiveWindowMillis;
    this.t = keys.decisionMillis(slot, this.asked);
    this.isHeld = this.t > this.asked && (!this.isEvent || keys.mayHaveForgotten(slot, this.asked));
    this.live = slot === NONE ? 0 : keys.logs.liveCost(slot, this.t, this.windowMillis);
    return this;
  }

  get fits(): boolean {
    return !this.isHeld && this.live + this.cost <= this.keys.rule.limit;
  }

  denial(place: Place): Decision {
    const { slot, t, cost, windowMillis, isHeld, keys } = this;
    const { id, limit } = keys.rule;
    const isKnown = slot !== NONE;
    const wait = isKnown
      ? keys.logs.millisUntilAvailable(slot, t, cost, limit, windowMillis)
      : cost > limit
        ? Infinity
        : 0;
    const empty = isKnown ? keys.logs.millisUntilEmpty(slot, t, windowMillis) : 0;
    // Held back: nothing fits before the time of the decision is reached, and then as much as is free there.
    const since = (millis: number): number => (isHeld ? millis + (t - this.asked) : this.#sinceAsked(millis));
    return {
      allowed: false,
      ruleId: id,
      limit,
      windowMillis: keys.rule.windowMillis,
      remaining: isHeld ? 0 : Math.max(0, limit - this.live),
      retryAfterMillis: wait === Infinity ? keys.rule.windowMillis : since(wait),
      resetMillis: since(empty),
      decided: receiptAt(place, t),
    };
  }

  /** Of what fits, once it was granted to the key in `slot`. */
  grant(slot: number, place: Place): Decision {
    const { t, windowMillis, keys } = this;
    const { id, limit } = keys.rule;
    const remaining = limit - this.live - this.cost;
    const wait = remaining > 0 ? 0 : keys.logs.millisUntilAvailable(slot, t, 1, limit, windowMillis);
    return {
      allowed: true,
      ruleId: id,
      limit,
      windowMillis: keys.rule.windowMillis,
      remaining,
      retryAfterMillis: this.#sinceAsked(wait),
      resetMillis: this.#sinceAsked(windowMillis),
      decided: receiptAt(place, t),
    };
  }

  /**
   * A wait after the decision's time, as a wait after the time asked for: a caller whose clock lags behind the key's
   * newest grant has to wait out the lag as well. No wait stays none.
   */
  #sinceAsked(waitMillis: number): number {
    return waitMillis === 0 ? 0 : waitMillis + (this.t - this.asked);
  }
}
