/**
 * The memory of keys of the naive limiter: grants, refunds, forgetting, sweeps, and changes of rules. It decides
 * nothing.
 */
import type { Entry } from '../../raft/types.ts';
import type { RuleTable } from '../../src/limiter/rules.ts';
import type { Asked } from './id-ledger.ts';
import type { WantedUse } from './logged-entries.ts';
import type { Judged } from './naive-judgement.ts';
import type { Known } from './naive-known.ts';
import { runsWith } from './naive-inheritance.ts';
import { afterJudged, inForceFrom, isIdle, KEY_BYTES, keptAfterMillis } from './naive-keys.ts';
import {
  afterGrant,
  afterRefund,
  atTime,
  bytesOf,
  capacityOf,
  idleAt,
  meterKindOf,
  newestOf,
  type Run,
} from './naive-meters.ts';
import type { NaivePast } from './naive-past.ts';
import { ruleOfKey } from './naive-record.ts';
import { axisOf, NO_STEPS } from './naive-utc.ts';
import type { GrantedLimit } from './naive-requests.ts';
import { type Key, keyItem, type KeysOfRule, type RuleState, type Tally } from './naive-state.ts';
import type { Rule } from '../../src/api/rule.ts';

export type UseRefused =
  | { readonly kind: 'unknown'; readonly ruleId: string }
  | { readonly kind: 'above'; readonly ruleId: string; readonly usedMax: number }
  | { readonly kind: 'full' };

export class NaiveKept {
  sweepRule = 0;
  sweepKey = 0;
  readonly #past: NaivePast;
  readonly #tally: Tally;
  #rules: KeysOfRule[] = [];

  constructor(past: NaivePast, tally: Tally) {
    this.#past = past;
    this.#tally = tally;
  }

  /** Uses the meter that counted it. Only a log of every millisecond knows its grants from before its rule changed. */
  takeBack(
    { asked: { userId, cost }, decision }: GrantedLimit,
    { index, timeMillis: nowMillis }: Entry,
  ): void {
    const { ruleId, decided } = decision;
    const keys = this.#past.activeAt(ruleId, decided.index);
    const key = keys?.keys.get(userId);
    const before = key?.runs.at(-1)?.value;
    if (keys === undefined || key === undefined || before === undefined) return;
    const { rule, ruledIndex } = keys.state;
    if (meterKindOf(rule) !== 'slidingLog' && decided.index <= ruledIndex) return;
    // The key was reset since, or forgotten; or it is unknown how much of the grant has drained at which rate.
    if (decided.index < key.sinceIndex) return;
    const laterMillis = axisOf(rule, this.#past.stepsAt(index));
    const back = { timeMillis: decided.timeMillis, cost, nowMillis: nowMillis + laterMillis };
    const runs = afterRefund(this.#ruleOf(keys, key), before, back);
    this.#tally.bytes += bytesOf(rule, runs) - bytesOf(rule, before);
    this.#tally.count(keyItem(keys, key, before), -1);
    key.runs.push({ index, value: runs });
    this.#tally.count(keyItem(keys, key, runs), 1);
  }

  grant(
    keys: KeysOfRule,
    { known, asked, judged }: { readonly known: Known; readonly asked: Asked; readonly judged: Judged },
    entry: Entry,
  ): readonly Run[] {
    const { userId, cost } = asked;
    let key = keys.keys.get(userId);
    const before = key?.runs.at(-1)?.value;
    const { rule, groupWindowMillis } = known;
    const runs = afterJudged({ rule, groupWindowMillis, runs: before }, judged, cost);
    if (key === undefined) {
      key = { userId, madeMillis: 0, made: [], sinceIndex: 0, runs: [] };
      keys.keys.set(userId, key);
    }
    if (before === undefined) {
      keys.order.push(key);
      key.sinceIndex = entry.index;
      key.madeMillis = 0;
      this.#tally.bytes += KEY_BYTES + userId.length;
    } else {
      this.#tally.count(keyItem(keys, key, before), -1);
      this.#tally.bytes -= bytesOf(rule, before);
    }
    this.#tally.bytes += bytesOf(rule, runs);
    const { nearEpochMillis } = this.#past;
    const brought = runsWith(judged.inherited, { rule, groupWindowMillis, runs: before }, judged);
    const keptMillis = keptAfterMillis(keys, { before: brought, judged, nearEpochMillis });
    key.madeMillis = Math.max(key.madeMillis, entry.timeMillis + keptMillis);
    key.made.push({ index: entry.index, value: key.madeMillis });
    key.runs.push({ index: entry.index, value: runs });
    this.#tally.count(keyItem(keys, key, runs), 1);
    if (judged.isEvent && !keys.state.isEventTimed) this.#setRule(keys, { isEventTimed: true }, entry.index);
    return runs;
  }

  changeRules(table: RuleTable, { index, timeMillis }: Entry): void {
    const since = new Map<string, number>();
    for (const { state } of this.#rules) if (state.isActive) since.set(state.rule.id, state.sinceMillis);
    // A rule that is no longer in force still sets the window of its grants, with the drift of today.
    for (const keys of this.#rules) {
      const { rule, sinceMillis } = keys.state;
      const followed = inForceFrom(index, { rule, table, before: keys.state, sinceMillis });
      const outOfForce = { ...followed, isActive: false };
      this.#setRule(keys, outOfForce, index);
    }
    for (const rule of table.rules) {
      const kind = meterKindOf(rule);
      let keys = this.#rules.find(
        ({ state }) => state.rule.id === rule.id && meterKindOf(state.rule) === kind,
      );
      const sinceMillis = since.get(rule.id) ?? timeMillis + 1;
      const inForce = inForceFrom(index, { rule, table, before: keys?.state, sinceMillis });
      if (keys === undefined) {
        const state = { ...inForce, isEventTimed: false, evictedThroughMillis: 0 };
        keys = { state, states: [], keys: new Map(), order: [] };
        this.#rules.push(keys);
        this.#past.rules.set(rule.id, [...(this.#past.rules.get(rule.id) ?? []), keys]);
        this.#tally.count({ kind: 'rule', ...state }, 1);
      }
      this.#setRule(keys, inForce, index);
    }
    this.#rules = this.#rules.filter((keys) => {
      const isKept = keys.state.isActive || keys.order.length > 0 || keys.state.evictedThroughMillis > 0;
      if (!isKept) {
        this.#tally.count({ kind: 'rule', ...keys.state }, -1);
        keys.states.push({ index, value: undefined });
      }
      return isKept;
    });
    this.sweepRule = 0;
    this.sweepKey = 0;
  }

  sweep(entry: Entry, peeks: number, drops: number): void {
    const nowMillis = entry.timeMillis;
    const { nearEpochMillis } = this.#past;
    const steps = this.#past.stepsAt(entry.index);
    let dropped = 0;
    for (let peek = 0; peek < peeks && dropped < drops && this.#rules.length > 0; peek += 1) {
      const keys = this.#rules[this.sweepRule];
      const key = keys?.order[this.sweepKey];
      if (keys === undefined || key === undefined) {
        this.sweepRule = (this.sweepRule + 1) % this.#rules.length;
        this.sweepKey = 0;
      } else if (isIdle(keys, key, this.#ruleOf(keys, key), { nowMillis, nearEpochMillis, steps })) {
        this.#forgetIdle(keys, key, entry);
        dropped += 1;
      } else this.sweepKey += 1;
    }
  }

  /**
   * Why the used amount cannot be set. All of these rules must be in force and their limits large enough, otherwise
   * nothing changes.
   */
  refusesUse(
    userId: string,
    { ruleIds, used }: WantedUse,
    { index, capBytes }: { readonly index: number; readonly capBytes: number },
  ): UseRefused | undefined {
    let bytes = 0;
    for (const ruleId of ruleIds) {
      const keys = this.#past.activeAt(ruleId, index);
      if (keys === undefined) return { kind: 'unknown', ruleId };
      const rule = this.#ruleOf(keys, { userId });
      if (used > capacityOf(rule)) return { kind: 'above', ruleId, usedMax: capacityOf(rule) };
      const isKnown = keys.keys.get(userId)?.runs.at(-1)?.value !== undefined;
      const runs = afterGrant(rule, [], { ...atTime(1, 1, NO_STEPS), keptMillis: 1, cost: used });
      if (!isKnown) bytes += KEY_BYTES + userId.length + bytesOf(rule, runs);
    }
    return bytes > 0 && this.#tally.bytes + bytes > capBytes ? { kind: 'full' } : undefined;
  }

  /**
   * Sets the used amount of a key, as if granted now, in place of everything before. The key is not new to the windows:
   * they know its whole history.
   */
  use(userId: string, { ruleIds, used }: WantedUse, { index, timeMillis }: Entry): void {
    this.reset(userId, index, ruleIds);
    for (const ruleId of ruleIds) {
      const keys = this.#past.activeAt(ruleId, index);
      if (keys === undefined) continue;
      const { groupWindowMillis: windowMillis, sinceMillis } = keys.state;
      const rule = this.#ruleOf(keys, { userId });
      const steps = this.#past.stepsAt(index);
      const now = atTime(timeMillis + axisOf(rule, steps), windowMillis, steps);
      const at = { ...now, keptMillis: windowMillis, cost: used };
      const runs = afterGrant(rule, [], at);
      const key = keys.keys.get(userId) ?? { userId, madeMillis: 0, made: [], sinceIndex: 0, runs: [] };
      keys.keys.set(userId, key);
      keys.order.push(key);
      key.sinceIndex = index;
      key.madeMillis = Math.max(timeMillis, sinceMillis);
      key.made.push({ index, value: key.madeMillis });
      key.runs.push({ index, value: runs });
      this.#tally.bytes += KEY_BYTES + userId.length + bytesOf(rule, runs);
      this.#tally.count(keyItem(keys, key, runs), 1);
    }
  }

  /** Everything remembered of a key, whether it counts or not. */
  reset(userId: string, index: number, ruleIds?: readonly string[]): void {
    for (const [place, keys] of this.#rules.entries()) {
      if (ruleIds?.includes(keys.state.rule.id) === false) continue;
      const key = keys.keys.get(userId);
      if (key?.runs.at(-1)?.value === undefined) continue;
      this.#forget(keys, key, index);
      // The position of a sweep is never beyond the end.
      if (place === this.sweepRule) this.sweepKey = Math.min(this.sweepKey, keys.order.length);
    }
  }

  /**
   * From entry `index` on a key has other limits: for earlier grants in its buckets it is unknown how much has drained.
   */
  followOwn(userId: string, index: number): void {
    for (const { state, keys } of this.#rules) {
      const key = keys.get(userId);
      if (key !== undefined && meterKindOf(state.rule) === 'bucket') key.sinceIndex = index;
    }
  }

  #setRule(keys: KeysOfRule, change: Partial<RuleState>, index: number): void {
    this.#tally.count({ kind: 'rule', ...keys.state }, -1);
    keys.state = { ...keys.state, ...change };
    keys.states.push({ index, value: keys.state });
    this.#tally.count({ kind: 'rule', ...keys.state }, 1);
  }

  #forgetIdle(keys: KeysOfRule, key: Key, { index }: Entry): void {
    const runs = key.runs.at(-1)?.value ?? [];
    const steps = this.#past.stepsAt(index);
    const goneMillis = idleAt(this.#ruleOf(keys, key), runs, keys.state.groupWindowMillis, steps);
    const evictedThroughMillis = Math.max(keys.state.evictedThroughMillis, goneMillis);
    if (newestOf(runs) >= this.#past.nearEpochMillis) this.#setRule(keys, { evictedThroughMillis }, index);
    this.#forget(keys, key, index);
  }

  #forget(keys: KeysOfRule, key: Key, index: number): void {
    const runs = key.runs.at(-1)?.value ?? [];
    this.#tally.count(keyItem(keys, key, runs), -1);
    this.#tally.bytes -= KEY_BYTES + key.userId.length + bytesOf(keys.state.rule, runs);
    key.runs.push({ index, value: undefined });
    const last = keys.order.pop();
    if (last !== undefined && last !== key) keys.order[keys.order.indexOf(key)] = last;
  }

  /** The rule as it applies to the key now. */
  #ruleOf({ state }: KeysOfRule, { userId }: Pick<Key, 'userId'>): Rule {
    return ruleOfKey(state.rule, this.#past.records.at(userId, Infinity));
  }
}
