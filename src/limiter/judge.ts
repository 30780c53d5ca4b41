/**
 * The one judgement: the outcome of a request, given what is remembered of its key. The log, the quick denials and the
 * library all use it; nothing else judges. It changes nothing and reads no clock: the time is an argument.
 */

import { type CustomerRecord, NO_RECORD } from '../api/customer-record.ts';
import { limitStatusOf } from '../api/joint-answer.ts';
import { assert } from './assert.ts';
import type { Decision } from './decision.ts';
import { conflictBetween, type Outcome, type Question } from './question.ts';
import type { Demand } from './meters/meter.ts';
import { isBlockedAt, recordAt, ruleFor } from './state/customer-table.ts';
import { inheritedBy, type Inherited, millisBetween, newestInherited } from './state/inheritance.ts';
import { AHEAD_MILLIS_MAX, type KeyTable } from './state/key-table.ts';
import type { LimiterState } from './state/limiter-state.ts';
import { NONE } from './state/rows.ts';
import type { Room } from './state/state-size.ts';
import type { TextBytes } from './state/text-bytes.ts';
import { NOT_JUDGED, type DecidedAt, receiptAt, refusalOf } from './decisions-without-limit.ts';
import type { LimitStatus } from '../api/answer.ts';
import { capacityOf, type Rule } from '../api/rule.ts';

/** The judgement of one question. One object is reused for many questions. */
export class Judgement implements Demand {
  outcome: Outcome = 'fits';
  /** The slot of the question's key in its table, or `NONE`. */
  slot = NONE;
  /** Time of the key's newest grant; `-Infinity` for an unknown key. */
  newestMillis = -Infinity;
  /** Judged at a caller's timestamp, not in group time. */
  isEvent = false;
  /** The time that the request asked for, in milliseconds: its timestamp, or group time. */
  asked = 0;
  /** The time that the request is judged at, in milliseconds: the later of `asked` and the key's newest grant. */
  t = 0;
  cost = 0;
  windowMillis = 0;
  /** The cost that counts at time `t`. */
  live = 0;
  /**
   * It is judged at a later time than it asked for, and must be denied. Either grants at the time asked for may have
   * been forgotten (`evictedThroughMillis`), or it asks in group time and the key has grants with later timestamps of a
   * caller. If such a request were judged at the newest of those timestamps, it could be granted each time that
   * timestamp moves on, so more often than real time allows.
   */
  isHeld = false;
  #keys: KeyTable | undefined;
  #rule: Rule | undefined;
  #capacity = 0;
  /** The customer record of the key that is judged; undefined if it has none. */
  #record: CustomerRecord | undefined;
  /** For a key that is new to its window: what it inherits from the other windows of its rule. */
  inherited: Inherited | undefined;
  /** Milliseconds after `t` until nothing granted under other meters or other windows counts any more. */
  #othersMillis = 0;
  /** Group time. */
  #now = 0;
  #isSettled = false;
  /** The slot of the grant that has the same request id, or `NONE`. */
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

  /** The rule with the overrides of the key's customer record. */
  get rule(): Rule {
    return this.#rule!;
  }

  /**
   * Checks in this order: request id, guard, block, existence of the rule, limit, room. The key is looked up already.
   * @param keys the keys of the rule; undefined if there is no such rule
   * @param now group time in milliseconds
   * @param room whether the place that would keep the grant has room, beyond what this state itself allows
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
    if (this.isRefusedByGuard(state, question)) return this.outcome;
    this.findRecord(state, now);
    if (this.isBlocked && !question.isSettled) return (this.outcome = 'blocked');
    if (keys === undefined) return (this.outcome = 'unknown_rule');
    this.judgeKey(state.name, keys, question, now);
    if (this.isDenied) return (this.outcome = 'denied');
    const hasRoom = state.hasRoomFor(this, question.hasRequestId, room);
    return (this.outcome = hasRoom ? 'fits' : 'at_capacity');
  }

  /** The first check alone: is there a grant under the question's request id? If so, the outcome is `repeated`. */
  isRepeated(state: LimiterState, { hasRequestId }: Question, now: number): boolean {
    this.#now = now;
    if (!hasRequestId) return false;
    this.#repeated = state.memory.find(state.requestKey, now);
    if (this.#repeated === NONE) return false;
    this.outcome = 'repeated';
    return true;
  }

  /** The second check: has the record of the guard's customer changed, or is it blocked? Then call `findRecord`. */
  isRefusedByGuard({ customers, guarded }: LimiterState, { guard, isSettled }: Question): boolean {
    if (guard === undefined) return false;
    guarded.set(guard.userId);
    this.#record = customers.find(guarded);
    const isSame = (this.#record?.version ?? 0) === guard.version;
    if (isSame && (isSettled || !this.isBlocked)) return false;
    this.outcome = isSame ? 'blocked' : 'customer_changed';
    return true;
  }

  /** Finds the customer record of the key that was looked up last. Call it before judging. @param now group time */
  findRecord({ customers, name }: LimiterState, now: number): void {
    this.#record = customers.find(name);
    this.#now = now;
  }

  /** Blocks use group time, even for a request that is judged at a timestamp of its own. */
  get isBlocked(): boolean {
    return isBlockedAt(this.#record, this.#now);
  }

  /** When the key's block ends, in group time; undefined if it is not blocked or if the block has no end. */
  get blockedUntilMillis(): number | undefined {
    return this.isBlocked ? this.#record?.blockedUntilMillis : undefined;
  }

  /**
   * The limit check alone, with the key's overrides, counting grants under all meters that the rule has had.
   * @param isJudged the request fits and its inheritance is recorded already. Other windows may have been charged since
   */
  judgeKey(name: TextBytes, keys: KeyTable, question: Question, now: number, isJudged = false): void {
    const rule = this.#record === undefined ? keys.rule : ruleFor(this.#record, keys.rule);
    this.judgeLimit(keys, keys.find(name), question, now, rule);
    const isNew = !isJudged && keys.isNewTo(this.slot);
    if (keys.retired.length > 0 || isNew) this.#countOthers(keys, name, isNew, now);
  }

  /**
   * The limit check alone, counting only grants under the present meter.
   * @param slot the key's slot in `keys`, or `NONE`
   * @param rule the rule with the key's overrides
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
    // A restored cluster denies while history may be missing. A settled cost cannot be denied, so it is recorded now.
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
   * Adds grants that the present meter does not know. After a rule changed its meter, older grants count on top, as
   * their own meter counts them, until they leave their window: so nobody gets around the limit, and windows that begin
   * after the change keep the promise of the new meter. The same holds for a key that is new to this window and has
   * grants under other windows of the rule.
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
    // If one meter knows all of them, that meter computes the wait (see `denial`).
    if (this.inherited.from !== undefined) return;
    this.#othersMillis = Math.max(this.#othersMillis, this.inherited.emptyMillis);
  }

  /** It fits at `t`. A request that is not held may be granted then. */
  get isWithinLimit(): boolean {
    return this.live + this.cost <= this.#capacity;
  }

  /** The limit denies it. A settled cost is never denied. */
  get isDenied(): boolean {
    return !this.#isSettled && (this.isHeld || !this.isWithinLimit);
  }

  /** The answer to a question that is not granted: any outcome except `fits`. */
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
        assert(false, 'a request that fits is granted, not answered');
      default: {
        const never: never = outcome;
        return never;
      }
    }
  }

  /** The denial of the question; if it fits, the status of the limit, for peeks and joint requests (wait 0). */
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
    // If held: nothing fits before time `t` is reached; then everything that is free at `t` fits.
    const since = (millis: number): number => (isHeld ? millis + (t - this.asked) : this.#sinceAsked(millis));
    this.#remaining = isHeld ? 0 : Math.max(0, capacity - this.live);
    this.#retryAfterMillis = wait === Infinity ? rule.windowMillis : since(wait);
    this.#resetMillis = since(empty);
    const denial = this.#decision(false, place);
    const restoredMillis = this.keys.lostMillis(this, this.#now) - this.asked;
    // A cost that never fits is not denied because of missing history.
    return restoredMillis > 0 && wait !== Infinity ? { ...denial, restoredMillis } : denial;
  }

  /** The status of the key under its rule: the numbers of a denial, even if the question fits. */
  keyStatus(place: DecidedAt): LimitStatus {
    return limitStatusOf(this.denial(place));
  }

  /** The answer to a request that fits or is settled, after its cost was recorded for the key in `slot`. */
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
    // Cost beyond `burst` waits until that much has drained: until the whole queue is free.
    const waitMillis = this.#sinceAsked(meter.millisUntilAvailable(slot, this, rule.queue));
    return waitMillis === 0 ? decision : { ...decision, waitMillis };
  }

  /** A decision with the numbers of the judged limit. */
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
   * Converts a wait counted from `t` into a wait counted from the time asked for. A caller whose clock is behind the
   * key's newest grant also has to wait out that lag. A wait of 0 stays 0.
   */
  #sinceAsked(waitMillis: number): number {
    return waitMillis === 0 ? 0 : waitMillis + (this.t - this.asked);
  }
}
