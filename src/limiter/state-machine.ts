/**
 * The replicated state machine: commands of the log in, decisions out. A decision is a pure function of the
 * commands applied so far; nothing here may read a clock, a random number or a configuration of its own.
 */

import { assert } from './assert.ts';
import { type AllowBatch, DEFAULT_RULE } from './batch.ts';
import type { Command } from './command.ts';
import type { AppliedPosition, Decision } from './decision.ts';
import { KeyTable } from './key-table.ts';
import { decodeState, emptyState, encodeState, hashState, type LimiterState } from './limiter-snapshot.ts';
import { memoryKey } from './request-memory.ts';
import type { AllowRequest } from './request.ts';
import { effectiveWindowMillis, type RuleTable } from './rules.ts';
import type { SlidingLog } from './sliding-log.ts';

/**
 * Bounded housekeeping, paid by grants alone: only grants add state, and a denied request must change nothing.
 * Two of each per grant is more than one grant can add, so memory follows the load.
 */
const SWEPT_KEYS_PER_GRANT = 2;
const SWEPT_REQUEST_IDS_PER_GRANT = 2;

/** Reports the decision on request `i` of a batch. Must not throw: the batch would stay half applied. */
export type OnDecision = (i: number, decision: Decision) => void;

export interface LimiterStats {
  /** Keys with recorded grants, over all rules. */
  readonly keys: number;
  /** Recorded runs: grants of one key in one millisecond count once. */
  readonly grants: number;
  /** Remembered request ids. */
  readonly requestIds: number;
}

/**
 * @example
 * const machine = new LimiterStateMachine();
 * machine.apply({ type: 'rules', table }, { index: 1, term: 1, timeMillis: 0 });
 * machine.apply(decodeCommand(entry.data), entry, (i, decision) => reply(i, decision));
 */
export class LimiterStateMachine {
  #state: LimiterState = emptyState();
  /** The same tables as `#state.keyTables`, by rule id. */
  #tableOf = new Map<string, KeyTable>();

  /** The last applied command; index 0 before the first. */
  get applied(): AppliedPosition {
    return this.#state.applied;
  }

  get ruleTable(): RuleTable | undefined {
    return this.#state.table;
  }

  /**
   * Applies one committed command. Indexes must increase and group time must not decrease from call to call.
   * Without `onDecision` no decision is built.
   *
   * @throws LimiterAssertionError when positions go backwards: the log is not what it should be, stop
   */
  apply(command: Command, position: AppliedPosition, onDecision?: OnDecision): void {
    const { index, term, timeMillis } = position;
    const before = this.#state.applied;
    assert(index > before.index, `index ${index} applied after ${before.index}`);
    assert(term >= before.term, `term ${term} applied after ${before.term}`);
    assert(
      Number.isSafeInteger(timeMillis) && timeMillis >= before.timeMillis,
      `group time ${timeMillis} applied after ${before.timeMillis}`,
    );
    this.#state.applied = { index, term, timeMillis };
    switch (command.type) {
      case 'allow':
        this.#applyBatch(command.batch, onDecision);
        return;
      case 'rules':
        this.#applyRules(command.table);
        return;
      default: {
        const never: never = command;
        return never;
      }
    }
  }

  /**
   * The denial of `request` if the applied state already proves it at group time `nowMillis`, else undefined.
   * Changes nothing. Recorded grants never disappear and commands still to be applied only add to them, so a
   * leader may answer with it at once; a leader that was deposed can only deny for longer than needed.
   * A request that names a remembered request id is never denied here.
   */
  quickDenial(request: AllowRequest, nowMillis: number): Decision | undefined {
    const { applied, table } = this.#state;
    // Before the first table a rule may be missing only because its entry is still on the way.
    if (table === undefined) return undefined;
    const now = Math.max(nowMillis, applied.timeMillis);
    const ruleId = this.#resolve(request.ruleId ?? DEFAULT_RULE);
    if (request.requestId !== undefined) {
      if (this.#state.memory.find(memoryKey(ruleId, request.userId, request.requestId), now) >= 0) {
        return undefined;
      }
    }
    const keys = this.#tableOf.get(ruleId);
    if (keys === undefined || !keys.active) return refusal(ruleId, applied, now);
    const log = keys.get(request.userId);
    const cost = request.cost ?? 1;
    const isEvent = keys.rule.clock === 'request' && request.timestampMillis !== undefined;
    const asked = isEvent ? (request.timestampMillis ?? now) : now;
    const windowMillis = isEvent ? keys.rule.windowMillis : keys.effectiveWindowMillis;
    const t = keys.decisionMillis(log, asked);
    const isHeld = keys.isHeld(log, asked, t, isEvent);
    const live = log === undefined ? 0 : log.liveCost(t, windowMillis);
    if (!isHeld && live + cost <= keys.rule.limit) return undefined;
    return denial(keys, log, applied, asked, t, cost, live, windowMillis, isHeld);
  }

  /**
   * The answer of an earlier grant with this request id, if it is still remembered at group time `nowMillis`.
   * Changes nothing.
   */
  remembered(
    ruleId: string | undefined,
    userId: string,
    requestId: string,
    nowMillis: number,
  ): Decision | undefined {
    const id = this.#resolve(ruleId ?? DEFAULT_RULE);
    const { memory, applied } = this.#state;
    // Not the applied time alone: in an idle group that stands still, and replays apply nothing.
    const now = Math.max(nowMillis, applied.timeMillis);
    const slot = memory.find(memoryKey(id, userId, requestId), now);
    return slot < 0 ? undefined : memory.decisionAt(slot, id);
  }

  /** The state in chunks of at most 256 KiB. O(state). */
  snapshot(): Uint8Array[] {
    return encodeState(this.#state);
  }

  /**
   * Replaces the state by that of a snapshot; on an error the state stays as it was.
   *
   * @throws InvalidSnapshotError
   */
  restore(chunks: readonly Uint8Array[]): void {
    this.#state = decodeState(chunks);
    this.#tableOf = new Map(this.#state.keyTables.map((keys) => [keys.rule.id, keys]));
  }

  /**
   * A hash of everything later decisions depend on except the applied position: equal on replicas that applied
   * the same commands, unchanged by denied requests. 16 hexadecimal digits, O(state).
   */
  hash(): string {
    return hashState(this.#state);
  }

  /** O(keys). */
  stats(): LimiterStats {
    let keys = 0;
    let grants = 0;
    for (const table of this.#state.keyTables) {
      keys += table.size;
      for (let slot = 0; slot < table.size; slot++) grants += table.logAt(slot).runCount;
    }
    return { keys, grants, requestIds: this.#state.memory.size };
  }

  #applyRules(table: RuleTable): void {
    const state = this.#state;
    const { timeMillis } = state.applied;
    if (state.table === undefined) state.createdMillis = timeMillis;
    else if (table.version <= state.table.version) return;
    state.changedMillis = timeMillis;
    state.table = table;
    for (const keys of state.keyTables) keys.active = false;
    for (const rule of table.rules) {
      const windowMillis = effectiveWindowMillis(rule, table.clockDriftPpm);
      const keys = this.#tableOf.get(rule.id);
      if (keys === undefined) {
        const added = new KeyTable(rule, windowMillis, state.createdMillis);
        this.#tableOf.set(rule.id, added);
        state.keyTables.push(added);
      } else {
        keys.rule = rule;
        keys.effectiveWindowMillis = windowMillis;
        keys.active = true;
      }
    }
    // A rule that left without ever granting takes nothing with it; any other keeps what it granted.
    state.keyTables = state.keyTables.filter(
      (keys) => keys.active || keys.size > 0 || keys.evictedThroughMillis > 0,
    );
    this.#tableOf = new Map(state.keyTables.map((keys) => [keys.rule.id, keys]));
    state.sweepTable = 0;
    state.sweepSlot = 0;
  }

  #applyBatch(batch: AllowBatch, onDecision: OnDecision | undefined): void {
    const ruleIds = batch.ruleIds.map((ruleId) => this.#resolve(ruleId));
    const tables = ruleIds.map((ruleId) => this.#tableOf.get(ruleId));
    for (let i = 0; i < batch.userIds.length; i++) {
      const ruleIndex = batch.ruleIndexes?.[i] ?? 0;
      this.#decide(
        i,
        batch.userIds[i]!,
        ruleIds[ruleIndex]!,
        tables[ruleIndex],
        batch.costs?.[i] ?? 1,
        batch.timestampsMillis?.[i] ?? null,
        batch.requestIds?.[i] ?? null,
        onDecision,
      );
    }
  }

  #decide(
    i: number,
    userId: string,
    ruleId: string,
    keys: KeyTable | undefined,
    cost: number,
    timestampMillis: number | null,
    requestId: string | null,
    onDecision: OnDecision | undefined,
  ): void {
    const { applied, memory } = this.#state;
    const now = applied.timeMillis;
    const retryKey = requestId === null ? undefined : memoryKey(ruleId, userId, requestId);
    if (retryKey !== undefined) {
      const slot = memory.find(retryKey, now);
      if (slot >= 0) {
        onDecision?.(i, memory.decisionAt(slot, ruleId));
        return;
      }
    }
    if (keys === undefined || !keys.active) {
      onDecision?.(i, refusal(ruleId, applied, now));
      return;
    }
    const { limit } = keys.rule;
    const log = keys.get(userId);
    const isEvent = timestampMillis !== null && keys.rule.clock === 'request';
    const asked = isEvent ? timestampMillis : now;
    const windowMillis = isEvent ? keys.rule.windowMillis : keys.effectiveWindowMillis;
    const t = keys.decisionMillis(log, asked);
    const isHeld = keys.isHeld(log, asked, t, isEvent);
    const live = log === undefined ? 0 : log.liveCost(t, windowMillis);
    if (isHeld || live + cost > limit) {
      onDecision?.(i, denial(keys, log, applied, asked, t, cost, live, windowMillis, isHeld));
      return;
    }

    const granted = keys.grant(userId, log, t, cost, now);
    if (isEvent) keys.eventTimed = true;
    this.#state.changedMillis = now;
    if (onDecision !== undefined || retryKey !== undefined) {
      const remaining = limit - live - cost;
      const wait = remaining > 0 ? 0 : granted.millisUntilAvailable(t, 1, limit, windowMillis);
      const retryAfterMillis = sinceAsked(wait, asked, t);
      const resetMillis = sinceAsked(windowMillis, asked, t);
      const { term, index } = applied;
      if (retryKey !== undefined) {
        const expiresMillis = now + (this.#state.table?.requestIdHorizonMillis ?? 0);
        memory.remember(
          retryKey,
          expiresMillis,
          term,
          index,
          t,
          limit,
          remaining,
          retryAfterMillis,
          resetMillis,
          keys.rule.windowMillis,
        );
      }
      onDecision?.(i, {
        allowed: true,
        ruleId,
        limit,
        windowMillis: keys.rule.windowMillis,
        remaining,
        retryAfterMillis,
        resetMillis,
        decided: { term, index, timeMillis: t },
      });
    }
    memory.expire(now, SWEPT_REQUEST_IDS_PER_GRANT);
    this.#sweep(now);
  }

  /** Looks at the next few keys and forgets the idle ones. */
  #sweep(now: number): void {
    const state = this.#state;
    for (let i = 0; i < SWEPT_KEYS_PER_GRANT; i++) {
      const keys = state.keyTables[state.sweepTable];
      assert(keys !== undefined, 'a sweep follows a grant, and a grant has a key table');
      if (state.sweepSlot >= keys.size) {
        state.sweepTable = (state.sweepTable + 1) % state.keyTables.length;
        state.sweepSlot = 0;
      } else if (!keys.evictIfIdle(state.sweepSlot, now)) {
        state.sweepSlot++;
      }
    }
  }

  /** The id of the rule that is meant: the default rule's where none was named. */
  #resolve(ruleId: string): string {
    return ruleId === DEFAULT_RULE ? (this.#state.table?.rules[0]?.id ?? DEFAULT_RULE) : ruleId;
  }
}

function denial(
  keys: KeyTable,
  log: SlidingLog | undefined,
  applied: AppliedPosition,
  asked: number,
  t: number,
  cost: number,
  live: number,
  windowMillis: number,
  isHeld: boolean,
): Decision {
  const { id, limit } = keys.rule;
  const wait = log?.millisUntilAvailable(t, cost, limit, windowMillis) ?? (cost > limit ? Infinity : 0);
  const empty = log?.millisUntilEmpty(t, windowMillis) ?? 0;
  // Held back: nothing fits before the time of the decision is reached, and then as much as is free there.
  const since = (millis: number): number => (isHeld ? millis + (t - asked) : sinceAsked(millis, asked, t));
  return {
    allowed: false,
    ruleId: id,
    limit,
    windowMillis: keys.rule.windowMillis,
    remaining: isHeld ? 0 : Math.max(0, limit - live),
    retryAfterMillis: wait === Infinity ? keys.rule.windowMillis : since(wait),
    resetMillis: since(empty),
    decided: { term: applied.term, index: applied.index, timeMillis: t },
  };
}

function refusal(ruleId: string, applied: AppliedPosition, timeMillis: number): Decision {
  return {
    allowed: false,
    ruleId,
    limit: 0,
    windowMillis: 0,
    remaining: 0,
    retryAfterMillis: 0,
    resetMillis: 0,
    decided: { term: applied.term, index: applied.index, timeMillis },
    refusal: 'unknown_rule',
  };
}

/**
 * A wait after the decision's time `t`, as a wait after the time asked for: a caller whose clock lags behind
 * the key's newest grant has to wait out the lag as well. No wait stays none.
 */
function sinceAsked(waitMillis: number, asked: number, t: number): number {
  return waitMillis === 0 ? 0 : waitMillis + (t - asked);
}
