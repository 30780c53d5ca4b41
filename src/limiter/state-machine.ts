/**
 * The replicated state machine: it takes commands from the log and produces decisions. A decision is a pure function of
 * the commands applied so far. Nothing here may read a clock, a random number or a local configuration.
 */

import type { PeekRequest, KeyStatus } from '../api/peek.ts';
import type { AllowRequest } from '../api/request.ts';
import { type Inadmissible, inadmissibleHere, type TimestampBound } from './admission.ts';
import { assert } from './assert.ts';
import { JointJudgement } from './joint.ts';
import { type AllowBatch, BatchCursor, guardAt, requestAt, rowsOf } from './log/batch.ts';
import type { Command } from './log/command.ts';
import type { AppliedPosition, Decision } from './decision.ts';
import { applyCustomers } from './customer-changes.ts';
import { Judgement } from './judge.ts';
import { ReusedQuestion } from './question.ts';
import { statusAt } from './peek.ts';
import { DEFAULT_RULE, type RuleTable } from './rules.ts';
import { IdleSurvey } from './state/idle-survey.ts';
import { itemsOf, type StateItem } from './state/inspection.ts';
import type { KeyTable } from './state/key-table.ts';
import { LimiterState } from './state/limiter-state.ts';
import type { Room, StateCounts } from './state/state-size.ts';
import { StateReader, type StateRestore } from './state/state-reader.ts';
import { type StateSnapshot, StateWriter } from './state/state-writer.ts';
import { type DecidedAt, refundOf, unlessOlder } from './decisions-without-limit.ts';

/**
 * How many keys and request ids one grant sweeps. Only grants add state, so only grants pay for the cleanup; a denied
 * request must change nothing. Two per grant is more than one grant can add, so memory follows the load.
 */
const SWEPT_KEYS_PER_GRANT = 2;
const SWEPT_REQUEST_IDS_PER_GRANT = 2;

/**
 * Called once per request, in order. `i` is the request's first row in its batch. Must not throw: the batch would stay
 * half applied.
 */
export type OnDecision = (i: number, decision: Decision) => void;

/**
 * @example
 * const machine = new LimiterStateMachine();
 * machine.apply({ type: 'rules', table }, { index: 1, term: 1, timeMillis: 0 });
 * machine.apply(decodeCommand(entry.data), entry, (i, decision) => reply(i, decision));
 */
export class LimiterStateMachine {
  readonly #hashSeed: number;
  #state: LimiterState;
  #snapshot: StateWriter | undefined;
  #judgement = new Judgement();
  #joint = new JointJudgement();
  /** The request of the log that is being decided. Reused. */
  readonly #asked = new ReusedQuestion();
  /** The request that is answered before it is in the log. Reused. */
  readonly #quick = new ReusedQuestion();
  readonly #cursor = new BatchCursor();
  readonly #place = { term: 0, index: 0, position: undefined as number | undefined, rulesVersion: 0 };

  /**
   * @param hashSeed drawn by the process, 0 to 2^53, so that users cannot foresee how their ids are hashed. It may
   * differ between replicas, because no decision depends on it
   */
  constructor(hashSeed = 0) {
    this.#hashSeed = hashSeed;
    this.#state = new LimiterState(hashSeed);
  }

  /** History was lost, and no leader has yet committed that the group runs again. */
  get awaitsHistory(): boolean {
    return this.#state.lost.isOpen;
  }

  /**
   * For how many milliseconds after `nowMillis` (group time) a rule in force denies requests without a timestamp because
   * history is missing; 0 if none is missing. Requests with a timestamp, rules stated by requests, and bursts of
   * customers can take longer.
   */
  restoredMillis(nowMillis: number): number {
    return this.#state.restoredMillis(Math.max(nowMillis, this.applied.timeMillis));
  }

  /** How many milliseconds UTC is ahead of group time, according to the log. */
  get utcAheadMillis(): number {
    return this.#state.utc.aheadMillis;
  }

  /** The last applied command; index 0 before the first. */
  get applied(): AppliedPosition {
    return this.#state.applied;
  }

  get ruleTable(): RuleTable | undefined {
    return this.#state.table;
  }

  /**
   * Applies one committed command. Indexes must increase and group time must not decrease from call to call. Without
   * `onDecision` no decision is built.
   * @throws LimiterAssertionError if positions go backwards: the log is corrupt and the replica must stop
   */
  apply(command: Command, position: AppliedPosition, onDecision?: OnDecision): void {
    const { index, term, timeMillis } = position;
    const before = this.#state.applied;
    if (index <= before.index) assert(false, `index ${index} applied after ${before.index}`);
    if (term < before.term) assert(false, `term ${term} applied after ${before.term}`);
    if (!Number.isSafeInteger(timeMillis) || timeMillis < before.timeMillis) {
      assert(false, `group time ${timeMillis} applied after ${before.timeMillis}`);
    }
    this.#state.applied = { index, term, timeMillis };
    switch (command.type) {
      case 'allow':
        this.#applyBatch(command.batch, onDecision);
        return;
      case 'rules':
        if (command.table.version > this.#state.rulesVersion) this.#state.changeRules(command.table);
        return;
      case 'sweep':
        this.#state.sweep();
        return;
      case 'customers':
        applyCustomers(this.#state, command.requests, onDecision);
        return;
      case 'historyLost':
        this.#state.changedMillis = timeMillis;
        this.#state.lost.begin(index);
        return;
      case 'historyBegins':
        if (this.#state.lost.isOpen) this.#state.changedMillis = timeMillis;
        this.#state.lost.end(timeMillis, command.wallMillis);
        return;
      case 'utc':
        if (this.#state.utc.step(command.aheadMillis, timeMillis)) this.#state.changedMillis = timeMillis;
        return;
      default: {
        const never: never = command;
        return never;
      }
    }
  }

  /**
   * The denial of `request` if the applied state already proves it at group time `nowMillis`, else undefined. Changes
   * nothing. A leader may send it at once: commands that are not applied yet only add grants or refund them, so a
   * deposed leader, or one that has not applied a refund yet, can only deny for longer than necessary. Call
   * `isRemembered` first: a request whose id is known is never denied here. A request that fits but cannot be
   * remembered, by this state or by `room`, is refused as `at_capacity`.
   */
  quickDenial(request: AllowRequest, nowMillis: number, room: Room = 'free'): Decision | undefined {
    const state = this.#state;
    const { applied, table } = state;
    // Before the first table arrives, a missing rule proves nothing: its entry may still be on the way.
    if (table === undefined) return undefined;
    const now = Math.max(nowMillis, applied.timeMillis);
    if ((request.further?.length ?? 0) > 0) {
      const joint = this.#joint.judge(state, request, { now, room, place: this.#whole });
      return joint === 'repeated' || joint === 'fits' ? undefined : unlessOlder(request, this.#joint.answer);
    }
    const question = this.#quick.set(request);
    const keys = state.keysFor(question.ruleId);
    state.lookUp(request);
    const outcome = this.#judgement.judge(state, question, keys, now, room);
    if (outcome === 'repeated' || outcome === 'fits') return undefined;
    return unlessOlder(request, this.#judgement.answer(state, question, this.#whole));
  }

  /** Does the rule of its first limit exist, or does the request state one? */
  hasRuleOf({ ruleId }: AllowRequest): boolean {
    return this.#state.keysFor(ruleId ?? DEFAULT_RULE) !== undefined;
  }

  /** Why the request's rule can never decide it, with or without grants; undefined if it can. See `admission.ts`. */
  inadmissible(request: AllowRequest, bound: TimestampBound): Inadmissible | undefined {
    return inadmissibleHere(this.#state, request, bound);
  }

  /** Might there be a grant with this request id? Only the log decides whether it still counts. Changes nothing. */
  isRemembered(request: AllowRequest): boolean {
    // Most requests have no id: skip the hashing.
    if (request.requestId === undefined) return false;
    this.#state.lookUp(request);
    return this.#judgement.isRepeated(this.#state, this.#quick.set(request), this.#state.applied.timeMillis);
  }

  /** The status of a key at group time `nowMillis`; undefined if its rule does not exist. Changes nothing. */
  peek(request: PeekRequest, nowMillis: number): KeyStatus | undefined {
    const now = Math.max(nowMillis, this.#state.applied.timeMillis);
    return statusAt(this.#state, request, { judgement: this.#judgement, now, place: this.#whole });
  }

  /** The position of reads: after everything applied so far. */
  get #whole(): DecidedAt {
    const { term, index } = this.#state.applied;
    return { term, index, position: undefined, rulesVersion: this.#state.rulesVersion };
  }

  /** Starts writing the state as it is now. A snapshot that was started before ends. */
  snapshot(): StateSnapshot {
    this.#snapshot?.abandon();
    this.#snapshot = new StateWriter(this.#state).watch();
    return this.#snapshot;
  }

  /** Starts building a state from a snapshot. The present state stays in use until `install`. */
  restore(): StateRestore {
    const reader = new StateReader(new LimiterState(this.#hashSeed));
    let restored: LimiterState | undefined;
    return {
      add: (chunk) => reader.add(chunk),
      complete: () => {
        restored = reader.complete();
      },
      install: () => {
        assert(restored !== undefined, 'a state is complete before it is installed');
        this.#state = restored;
        // Drop every reference to the old state.
        this.#snapshot = undefined;
        this.#judgement = new Judgement();
        this.#joint = new JointJudgement();
      },
    };
  }

  /**
   * A hash of everything that later decisions depend on, except the applied position: equal on replicas that applied
   * the same commands, unchanged by denied requests. 16 hexadecimal digits. O(state).
   */
  hash(): string {
    return new StateWriter(this.#state).hash();
  }

  /** The whole state, item by item, for tests, as decisions read it and not as snapshots do. O(state). */
  inspect(): Iterable<StateItem> {
    return itemsOf(this.#state);
  }

  stats(): StateCounts {
    return this.#state.size.counts;
  }

  /** The size of the state in bytes by the model of `StateSize`: equal on all replicas. */
  get stateBytes(): number {
    return this.#state.size.bytes;
  }

  /** How many sweeps it takes to visit everything that is remembered. */
  get sweepsPerRound(): number {
    return this.#state.sweepsPerRound;
  }

  /** Searches the present state for items that a sweep would forget. Ends when another state is installed. */
  survey(): IdleSurvey {
    return new IdleSurvey(this.#state);
  }

  #applyBatch(batch: AllowBatch, onDecision: OnDecision | undefined): void {
    const state = this.#state;
    const tables = batch.ruleIds.map((ruleId) => state.keysFor(ruleId));
    const cursor = this.#cursor;
    const asked = this.#asked;
    const place = this.#place;
    place.term = state.applied.term;
    place.index = state.applied.index;
    place.rulesVersion = state.rulesVersion;
    cursor.open(batch);
    for (let i = 0; i < batch.size; i += 1) {
      cursor.next();
      asked.ruleId = batch.ruleIds[cursor.ruleIndex]!;
      asked.cost = cursor.cost;
      asked.timestampMillis = cursor.timestampMillis;
      asked.hasRequestId = cursor.hasRequestId;
      asked.askedDigest = cursor.askedDigest;
      asked.ifRemembered = cursor.ifRemembered;
      asked.isSettled = cursor.isSettled;
      asked.attempt = cursor.attempt;
      asked.guard = cursor.hasGuard ? guardAt(cursor) : undefined;
      place.position = i;
      state.lookUpAt(cursor);
      if (cursor.isRefund) this.#refund(i, onDecision);
      else if (cursor.further > 0) i += this.#decideJointly(batch, tables, onDecision) - 1;
      else this.#decide(i, tables[cursor.ruleIndex], onDecision);
    }
  }

  /** Decides the request whose first row the cursor is at. Returns the number of its rows. */
  #decideJointly(
    batch: AllowBatch,
    tables: readonly (KeyTable | undefined)[],
    onDecision: OnDecision | undefined,
  ): number {
    const state = this.#state;
    const joint = this.#joint;
    const place = this.#place;
    const i = place.position!;
    const now = state.applied.timeMillis;
    const request = requestAt(batch, this.#cursor) as AllowRequest;
    const rows = rowsOf(request);
    const keysFor = (ruleId: string): KeyTable | undefined => tables[batch.ruleIds.indexOf(ruleId)];
    if (joint.judge(state, request, { now, room: 'free', place, keysFor }) !== 'fits') {
      onDecision?.(i, joint.answer);
      return rows;
    }
    const decision = joint.grant(state, request, place, keysFor);
    onDecision?.(i, decision);
    state.memory.expire(now, rows * SWEPT_REQUEST_IDS_PER_GRANT);
    state.sweepKeys(rows * SWEPT_KEYS_PER_GRANT, rows * SWEPT_KEYS_PER_GRANT);
    return rows;
  }

  #refund(i: number, onDecision: OnDecision | undefined): void {
    const grant = this.#state.refund();
    onDecision?.(i, refundOf(grant, this.#place, this.#state.applied.timeMillis));
  }

  #decide(i: number, keys: KeyTable | undefined, onDecision: OnDecision | undefined): void {
    const state = this.#state;
    const judgement = this.#judgement;
    const question = this.#asked;
    const place = this.#place;
    const now = state.applied.timeMillis;
    if (judgement.judge(state, question, keys, now, 'free') !== 'fits') {
      onDecision?.(i, judgement.answer(state, question, place));
      return;
    }
    state.keep(judgement.keys);
    if (judgement.inherited !== undefined) {
      state.inherit(judgement.inherited);
      judgement.judgeKey(state.name, judgement.keys, question, now, true);
    }
    const slot = judgement.keys.grant(judgement, state.name, now, state.applied.index);
    state.changedMillis = now;
    if (onDecision !== undefined || question.hasRequestId) {
      const decision = judgement.grant(slot, place);
      if (question.hasRequestId) state.remember(decision, question, judgement.keys.meterKind);
      onDecision?.(i, decision);
    }
    state.memory.expire(now, SWEPT_REQUEST_IDS_PER_GRANT);
    state.sweepKeys(SWEPT_KEYS_PER_GRANT, SWEPT_KEYS_PER_GRANT);
  }
}
