/**
 * The one judgement: what becomes of a request, given what is remembered of its key? The log, the quick denial and the
 * library ask it, and nobody judges besides. It changes nothing, and reads no clock: the time is part of the question.
 */

import { type CustomerRecord, NO_RECORD } from '../api/customer-record.ts';
import { standingOf } from '../api/joint-answer.ts';
import { assert } from './assert.ts';
import type { Decision } from './decision.ts';
import { conflictBetween } from './fingerprint.ts';
import type { Demand } from './meters/meter.ts';
import type { Outcome, Question } from './question.ts';
import { isBlockedAt, recordAt, ruleFor } from './state/customer-table.ts';
import { inheritedBy, type Inherited, millisBetween, newestInherited } from './state/inheritance.ts';
import { AHEAD_MILLIS_MAX, type KeyTable } from './state/key-table.ts';
import type { LimiterState } from './state/limiter-state.ts';
import { NONE } from './state/rows.ts';
import type { Room } from './state/state-size.ts';
import type { TextBytes } from './state/text-bytes.ts';
import { NOT_JUDGED, type DecidedAt, receiptAt, refusalOf } from './decisions-without-limit.ts';
import type { LimitStanding } from '../api/answer.ts';
import { capacityOf, type Rule } from '../api/rule.ts';

/** What was found out about a question. One object is used for many, one after the other. */
export class Judgement implements Demand {
  outcome: Outcome = 'fits';
  /** The slot of its key, or `NONE`. */
  slot = NONE;
  /** Time of its key's newest grant; `-Infinity` for a key that is not known. */
  newestMillis = -Infinity;
  /** Judged at a caller's timestamp. */
  isEvent = false;
  /** The time it asks for. */
  asked = 0;
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
  #keys: KeyTable | undefined;
  #rule: Rule | undefined;
  #capacity = 0;
  /** Of the key that is judged; undefined: there is none. */
  #record: CustomerRecord | undefined;
  /** What the key, if it is new to its window, has of the other windows of its rule. */
  inherited: Inherited | undefined;
  /** Milliseconds after `t` until nothing counts of what was granted under other meters, or other windows. */
  #othersMillis = 0;
  /** Group time. */
  #now = 0;
  #isSettled = false;
  /** Of the grant that has its request id, or `NONE`. */
  #repeated = NONE;
  /** See `Decision`. */
  #remaining = 0;
  #retryAfterMillis = 0;
  #resetMillis = 0;

  get keys(): KeyTable {
    return this.#keys!;
  }

  /** See `Demand`. */
  get keptMillis(): number {
    return this.keys.effectiveWindowMillis + Math.min(Math.max(0, this.t - this.#now), AHEAD_MILLIS_MAX);
  }

  /** As it is for the key. */
  get rule(): Rule {
    return this.#rule!;
  }

  /**
   * The one order in which a question is looked at: its request id, its customer, a block, its rule, the limit, the room. The state has just been
   * told whose it is.
   *
   * @param keys of the rule that is meant, if there ever was one
   * @param room where the grant would be kept, beyond what this state may take
   */
  judge(
    state: LimiterState,
    question: Question,
    keys: KeyTable | undefined,
    now: number,
    room: Room,
  ): Outcome {
    if (this.isRepeated(state, question, now)) return this.outcome;
    if (question.ifRemembered) return (this.outcome = 'not_remembered');
    if (this.isGuardedOff(state, question)) return this.outcome;
    this.findRecord(state, now);
    if (this.isBlocked && !question.isSettled) return (this.outcome = 'blocked');
    if (keys === undefined) return (this.outcome = 'unknown_rule');
    this.judgeKey(state.name, keys, question, now);
    if (this.isDenied) return (this.outcome = 'denied');
    const hasRoom = state.hasRoomFor(this, question.hasRequestId, room);
    return (this.outcome = hasRoom ? 'fits' : 'at_capacity');
  }

  /** The first of these alone: is there a grant under the question's request id? Then that is the outcome. */
  isRepeated(state: LimiterState, { hasRequestId }: Question, now: number): boolean {
    this.#now = now;
    if (!hasRequestId) return false;
    this.#repeated = state.memory.find(state.requestKey, now);
    if (this.#repeated === NONE) return false;
    this.outcome = 'repeated';
    return true;
  }

  /** Has the guard's customer another record, or is it blocked? Then that is the outcome. The request's own key is looked up after. */
  isGuardedOff({ customers, guarded }: LimiterState, { guard, isSettled }: Question): boolean {
    if (guard === undefined) return false;
    guarded.set(guard.userId);
    this.#record = customers.find(guarded);
    const isSame = (this.#record?.version ?? 0) === guard.version;
    if (isSame && (isSettled || !this.isBlocked)) return false;
    this.outcome = isSame ? 'blocked' : 'customer_changed';
    return true;
  }

  /** What operators said of the key that was looked up just now: to be asked before it is judged. @param now group time */
  findRecord({ customers, name }: LimiterState, now: number): void {
    this.#record = customers.find(name);
    this.#now = now;
  }

  /** By group time, also of a request that is judged at a timestamp of its own. */
  get isBlocked(): boolean {
    return isBlockedAt(this.#record, this.#now);
  }

  /** Where the key is blocked, and that has an end. */
  get blockedUntilMillis(): number | undefined {
    return this.isBlocked ? this.#record?.blockedUntilMillis : undefined;
  }

  /**
   * The limit alone, as it is for this key, and what it was granted under all meters that the rule had.
   *
   * @param isJudged it fits, and what it brings along is recorded: other windows may have been charged since
   */
  judgeKey(name: TextBytes, keys: KeyTable, question: Question, now: number, isJudged = false): void {
    const rule = this.#record === undefined ? keys.rule : ruleFor(this.#record, keys.rule);
    this.judgeLimit(keys, keys.find(name), question, now, rule);
    const isNew = !isJudged && keys.isNewTo(this.slot);
    if (keys.retired.length > 0 || isNew) this.#countOthers(keys, name, isNew, now);
  }

  /**
   * The limit alone, by the meter of today.
   *
   * @param slot of the question's key in `keys`, or `NONE`
   * @param rule as it is for the key
   */
  judgeLimit(
    keys: KeyTable,
    slot: number,
    { cost, timestampMillis, isSettled }: Question,
    now: number,
    rule = keys.rule,
  ): void {
    this.#keys = keys;
    this.#rule = rule;
    this.#capacity = rule === keys.rule ? keys.capacity : capacityOf(rule);
    this.slot = slot;
    this.cost = cost;
    this.#isSettled = isSettled;
    this.isEvent = timestampMillis !== undefined && rule.clock === 'request';
    this.asked = this.isEvent ? (timestampMillis ?? now) : now + keys.aheadMillis;
    this.#now = now;
    this.windowMillis = this.isEvent ? rule.windowMillis : keys.effectiveWindowMillis;
    const newestMillis = slot === NONE ? -Infinity : keys.meter.newestMillis(slot);
    this.newestMillis = newestMillis;
    // A restored cluster denies requests for history that may be missing. A settled cost is not denied, so it is recorded now.
    const forgottenMillis = isSettled
      ? keys.forgottenMillis(newestMillis, this.asked)
      : keys.unknownMillis(newestMillis, this, now);
    this.t = Math.max(this.asked, newestMillis, forgottenMillis);
    this.isHeld = this.t > this.asked && (!this.isEvent || this.asked < forgottenMillis);
    this.live = slot === NONE ? 0 : keys.meter.liveCost(slot, this);
    this.inherited = undefined;
    this.#othersMillis = 0;
  }

  /**
   * A rule that changed its meter keeps its grants by another one from then on. What the key was granted before counts on
   * top, as its own meter says, until that is out: nobody gets around it, and windows that begin after the change hold
   * what the new meter promises. So does what other windows of its rule know of a key that is new to this one.
   */
  #countOthers(keys: KeyTable, name: TextBytes, isNew: boolean, now: number): void {
    const { cost, isEvent } = this;
    let forgottenMillis = 0;
    if (isNew) this.t = Math.max(this.t, newestInherited(this, name, now));
    for (const old of keys.retired) {
      const slot = old.keys.find(name);
      const newestMillis = slot === NONE ? -Infinity : old.meter.newestMillis(slot);
      const laterMillis = millisBetween(old, keys, isEvent);
      const through = old.forgottenMillis(newestMillis, this.asked - laterMillis);
      if (through > 0) forgottenMillis = Math.max(forgottenMillis, through + laterMillis);
      this.t = Math.max(this.t, newestMillis + laterMillis, forgottenMillis);
    }
    this.isHeld ||= this.t > this.asked && (!this.isEvent || this.asked < forgottenMillis);
    this.live = this.slot === NONE ? 0 : keys.meter.liveCost(this.slot, this);
    for (const table of keys.retired) {
      const { keys: before, rule: old, meter: former, effectiveWindowMillis: keptMillis } = table;
      const slot = before.find(name);
      if (slot === NONE) continue;
      const rule = ruleFor(this.#record, old);
      const windowMillis = this.isEvent ? rule.windowMillis : keptMillis;
      const t = this.t + millisBetween(keys, table, isEvent);
      const demand = { rule, t, cost, windowMillis, keptMillis, isEvent };
      this.live += former.liveCost(slot, demand);
      this.#othersMillis = Math.max(this.#othersMillis, former.millisUntilEmpty(slot, demand));
    }
    if (!isNew) return;
    this.inherited = inheritedBy(this, name, now);
    if (this.inherited === undefined) return;
    this.live += this.inherited.cost;
    // Where one meter knows all of it, that says how long it takes.
    if (this.inherited.from !== undefined) return;
    this.#othersMillis = Math.max(this.#othersMillis, this.inherited.emptyMillis);
  }

  /** It fits at `t`. Who was not held back may be granted it. */
  get isWithinLimit(): boolean {
    return this.live + this.cost <= this.#capacity;
  }

  /** The limit denies it. No limit denies a settled cost. */
  get isDenied(): boolean {
    return !this.#isSettled && (this.isHeld || !this.isWithinLimit);
  }

  /** The answer to a question that is not granted, for any outcome but `fits`. */
  answer(state: LimiterState, question: Question, place: DecidedAt): Decision {
    const { outcome } = this;
    switch (outcome) {
      case 'repeated': {
        const grant = state.memory.view(this.#repeated);
        const conflict = conflictBetween(grant.fingerprint, question);
        if (conflict === undefined && !grant.isRefunded) return state.memory.answerOf(this.#repeated);
        if (conflict === undefined) return refusalOf('refunded', grant.ruleId, place, this.#now);
        return refusalOf('request_id_reused', state.ruleIdOf(question.ruleId), place, this.#now, conflict);
      }
      case 'not_remembered':
      case 'unknown_rule':
      case 'at_capacity':
        return refusalOf(outcome, state.ruleIdOf(question.ruleId), place, this.#now);
      case 'customer_changed':
        return {
          ...refusalOf(outcome, state.ruleIdOf(question.ruleId), place, this.#now),
          customer: { isDone: false, record: recordAt(this.#record ?? NO_RECORD, this.#now) },
        };
      case 'blocked':
        return {
          ...NOT_JUDGED,
          ruleId: state.ruleIdOf(question.ruleId),
          retryAfterMillis: Math.max(0, (this.blockedUntilMillis ?? 0) - this.#now),
          decided: receiptAt(place, this.#now),
          rulesVersion: place.rulesVersion,
          isBlocked: true,
        };
      case 'denied':
        return this.denial(place);
      case 'fits':
        assert(false, 'what fits is granted, not answered');
      default: {
        const never: never = outcome;
        return never;
      }
    }
  }

  /** Also what is told of a limit that the question fits under: by a look, or as one of several. Nobody has to wait for that. */
  denial(place: DecidedAt): Decision {
    const { t, cost, isHeld, rule } = this;
    const { keys, slot } = this.inherited?.from ?? this;
    const capacity = this.#capacity;
    const isKnown = slot !== NONE;
    const fits = !isHeld && this.isWithinLimit;
    const unknownWait = cost > capacity ? Infinity : 0;
    const ownWait = isKnown ? keys.meter.millisUntilAvailable(slot, this, cost) : unknownWait;
    const wait = fits ? 0 : Math.max(ownWait, this.#othersMillis);
    const empty = Math.max(isKnown ? keys.meter.millisUntilEmpty(slot, this) : 0, this.#othersMillis);
    // Held back: nothing fits before the time of the decision is reached, and then as much as is free there.
    const since = (millis: number): number => (isHeld ? millis + (t - this.asked) : this.#sinceAsked(millis));
    this.#remaining = isHeld ? 0 : Math.max(0, capacity - this.live);
    this.#retryAfterMillis = wait === Infinity ? rule.windowMillis : since(wait);
    this.#resetMillis = since(empty);
    const denial = this.#decision(false, place);
    const restoredMillis = this.keys.lostMillis(this, this.#now) - this.asked;
    // What never fits is not denied for what is missing.
    return restoredMillis > 0 && wait !== Infinity ? { ...denial, restoredMillis } : denial;
  }

  /** How its key stands under its rule: what a denial of the question would tell, though it may fit. */
  standing(place: DecidedAt): LimitStanding {
    return standingOf(this.denial(place));
  }

  /** The answer to a request that fits, or is settled, after its cost was recorded for the key in `slot`. */
  grant(slot: number, place: DecidedAt): Decision {
    const { rule } = this;
    const { meter } = this.keys;
    const capacity = this.#capacity;
    // Only a settled cost may exceed the limit.
    this.#remaining = Math.max(0, capacity - this.live - this.cost);
    const ownWait = this.#remaining > 0 ? 0 : meter.millisUntilAvailable(slot, this, 1);
    const wait = this.#remaining > 0 ? 0 : Math.max(ownWait, this.#othersMillis);
    const empty = Math.max(meter.millisUntilEmpty(slot, this), this.#othersMillis);
    this.#retryAfterMillis = wait === Infinity ? rule.windowMillis : this.#sinceAsked(wait);
    this.#resetMillis = this.#sinceAsked(empty);
    const decision = this.#decision(true, place);
    if (rule.queue === undefined || this.#isSettled) return decision;
    // What is beyond `burst` waits until that much has flowed out: until there is room for the whole queue.
    const waitMillis = this.#sinceAsked(meter.millisUntilAvailable(slot, this, rule.queue));
    return waitMillis === 0 ? decision : { ...decision, waitMillis };
  }

  /** Of the limit. */
  #decision(allowed: boolean, place: DecidedAt): Decision {
    const { id, limit, windowMillis } = this.rule;
    return {
      allowed,
      ruleId: id,
      limit,
      windowMillis,
      remaining: this.#remaining,
      retryAfterMillis: this.#retryAfterMillis,
      resetMillis: this.#resetMillis,
      decided: receiptAt(place, this.t),
      rulesVersion: place.rulesVersion,
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
