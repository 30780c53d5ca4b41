/**
 * The limiter once more, as simply as can be: what every replica of a group must decide in each entry, what a leader may
 * deny at once, and the state that must be left. Written from the documents; of the product it takes types and the
 * decoding of commands. All it has ever known of a key it keeps, so it can be asked as of any entry.
 */
import type { Entry } from '../../raft/types.ts';
import type { Command } from '../../src/limiter/log/command.ts';
import type { Decision } from '../../src/limiter/decision.ts';
import type { RuleTable } from '../../src/limiter/rules.ts';
import type { StateItem } from '../../src/limiter/state/inspection.ts';
import type { Asked } from './id-ledger.ts';
import { afterJudged, bytesToGrant, inForceFrom, isIdle, KEY_BYTES, keptAfterMillis } from './naive-keys.ts';
import { loggedRequests } from './logged-requests.ts';
import {
  denialOf,
  differenceOf,
  grantOf,
  type Judged,
  judge,
  type Known,
  type Place,
  refundOf,
  refused,
} from './naive-judgement.ts';
import { afterRefund, bytesOf, idleAt, meterKindOf, newestOf, type Run, waitUntil } from './naive-meters.ts';
import { NaiveRequests, requestBytes } from './naive-requests.ts';
import {
  type Key,
  keyItem,
  type KeysOfRule,
  resolved,
  type RuleState,
  type Since,
  Tally,
  valueAt,
} from './naive-state.ts';

const WINDOW_MILLIS_MAX = 31 * 86_400_000;
/** Of keys and of request ids, after each grant; then what a sweep does. */
const LOOKS_PER_GRANT = 2;
const SWEEP_LOOKS = 8_192;
const SWEEP_DROPS = 1_024;

export class NaiveLimiter {
  #table: RuleTable | undefined;
  readonly #tables: Since<RuleTable>[] = [];
  #createdMillis = 0;
  #changedMillis = 0;
  #rules: KeysOfRule[] = [];
  /** All rules there ever were, and of each all meters that it had. */
  readonly #known = new Map<string, KeysOfRule[]>();
  #sweepRule = 0;
  #sweepKey = 0;
  readonly #times: Since<number>[] = [];
  readonly #tally = new Tally();
  readonly #requests = new NaiveRequests(this.#tally);

  get bytes(): number {
    return this.#tally.bytes;
  }

  /** Equal to that of every replica that has applied as much. */
  get digest(): number {
    const item: StateItem = {
      kind: 'state',
      version: this.#table?.version ?? 0,
      createdMillis: this.#createdMillis,
      changedMillis: this.#changedMillis,
      // Far more rules would have to come and go than a run has.
      droppedThroughMillis: 0,
      sweepTable: this.#sweepRule,
      sweepSlot: this.#sweepKey,
      bytes: this.bytes,
    };
    return this.#tally.digestWith(item);
  }

  tableAt(index: number): RuleTable | undefined {
    return valueAt(this.#tables, index);
  }

  isKnownAt(index: number, asked: Asked): boolean {
    const keys = this.#activeAt(resolved(asked.rule, this.tableAt(index)), index);
    return valueAt(keys?.keys.get(asked.userId)?.runs ?? [], index) !== undefined;
  }

  /** By its rule alone, and at that time in group time, how long it takes until nothing counts of what this user was granted. */
  emptyMillisAt(index: number, asked: Asked, timeMillis: number): number {
    const known = this.#knownAt(asked, this.tableAt(index), index);
    if (known === undefined) return 0;
    const waits = [known, ...known.retired].map(({ rule, groupWindowMillis: windowMillis, runs = [] }) =>
      waitUntil(rule, runs, { timeMillis, windowMillis }, 0),
    );
    return Math.max(...waits);
  }

  /** Nothing but a log of every millisecond ever kept the grants of this rule. */
  isPlainLog(ruleId: string): boolean {
    return (this.#known.get(ruleId) ?? []).every(({ state }) => meterKindOf(state.rule) === 'slidingLog');
  }

  /** Returns what every replica decides. */
  apply(
    command: Command,
    entry: Entry,
    onDecision: (i: number, asked: Asked, decision: Decision) => void,
  ): void {
    const { index, term, timeMillis } = entry;
    this.#times.push({ index, value: timeMillis });
    switch (command.type) {
      case 'rules':
        if (command.table.version > (this.#table?.version ?? 0)) this.#changeRules(command.table, entry);
        return;
      case 'sweep':
        this.#changedMillis = timeMillis;
        this.#requests.expire(timeMillis, SWEEP_DROPS);
        this.#sweep(entry, SWEEP_LOOKS, SWEEP_DROPS);
        return;
      case 'allow':
        for (const [i, asked] of loggedRequests(entry.data).entries()) {
          onDecision(i, asked, this.#decide(asked, { index, term, position: i }, entry));
        }
    }
  }

  /**
   * What a replica that has applied everything up to entry `index` says at once, at group time `nowMillis`: a denial, or
   * undefined if it may not deny. Where there is too little room is not its business.
   */
  denialAt(
    { index, term }: { readonly index: number; readonly term: number },
    asked: Asked,
    nowMillis: number,
  ) {
    const table = this.tableAt(index);
    const known = this.#knownAt(asked, table, index);
    if (known === undefined || nowMillis < (valueAt(this.#times, index) ?? 0)) return undefined;
    if (this.#requests.find(asked, { index, nowMillis }) !== undefined) return undefined;
    const judged = judge(known, asked, nowMillis);
    if (judged.fits) return undefined;
    return denialOf(known, judged, asked.cost, { index, term, position: undefined });
  }

  /** How a user stands there under a rule, as whoever asks for one more is told; undefined if there is no such rule. */
  standingAt(
    {
      index,
      term,
      timeMillis,
    }: { readonly index: number; readonly term: number; readonly timeMillis: number },
    userId: string,
    rule: string,
  ): Decision | undefined {
    const asked = { userId, rule, cost: 1, timestampMillis: undefined, requestId: undefined };
    const known = this.#knownAt(asked, this.tableAt(index), index);
    if (known === undefined || timeMillis < (valueAt(this.#times, index) ?? 0)) return undefined;
    return denialOf(known, judge(known, asked, timeMillis), 1, { index, term, position: undefined });
  }

  #activeAt(ruleId: string, index: number): KeysOfRule | undefined {
    return this.#known.get(ruleId)?.find(({ states }) => valueAt(states, index)?.isActive === true);
  }

  #knownAt(asked: Asked, table: RuleTable | undefined, index: number): Known | undefined {
    const ruleId = resolved(asked.rule, table);
    const active = this.#activeAt(ruleId, index);
    if (active === undefined) return undefined;
    const byMeter = (this.#known.get(ruleId) ?? []).flatMap((keys) => {
      const state = valueAt(keys.states, index);
      const runs = valueAt(keys.keys.get(asked.userId)?.runs ?? [], index);
      return state === undefined ? [] : [{ ...state, keys, runs }];
    });
    const [known] = byMeter.filter(({ keys }) => keys === active);
    const retired = byMeter.filter(({ keys }) => keys !== active);
    return known && { ...known, retired, nearEpochMillis: this.#nearEpochMillis };
  }

  get #nearEpochMillis(): number {
    return this.#createdMillis - WINDOW_MILLIS_MAX;
  }

  #decide(asked: Asked, place: Place, entry: Entry): Decision {
    const nowMillis = entry.timeMillis;
    const ruleId = resolved(asked.rule, this.#table);
    if (asked.isRefund === true) return this.#refund(asked, place, entry);
    const remembered = this.#requests.find(asked, { index: Infinity, nowMillis });
    if (remembered !== undefined) {
      const difference = differenceOf(remembered.asked, asked);
      if (difference === undefined && !remembered.isRefunded) return remembered.decision;
      if (difference === undefined)
        return refused('refunded', { ruleId: remembered.decision.ruleId, place, nowMillis });
      return refused('request_id_reused', { ruleId, place, nowMillis }, difference);
    }
    const known = this.#knownAt(asked, this.#table, entry.index);
    const keys = this.#activeAt(ruleId, entry.index);
    if (known === undefined || keys === undefined)
      return refused('unknown_rule', { ruleId, place, nowMillis });
    const judged = judge(known, asked, nowMillis);
    if (!judged.fits) return denialOf(known, judged, asked.cost, place);
    if (!this.#hasRoom(known, judged, asked)) return refused('at_capacity', { ruleId, place, nowMillis });
    const runs = this.#grant(keys, asked, judged, entry);
    if (judged.isEvent && !keys.state.isEventTimed) this.#setRule(keys, { isEventTimed: true }, entry);
    this.#changedMillis = nowMillis;
    const decision = grantOf(known.rule, judged, { runs, cost: asked.cost, place });
    if (asked.requestId !== undefined)
      this.#requests.remember(asked, decision, {
        index: entry.index,
        untilMillis: nowMillis + (this.#table?.requestIdHorizonMillis ?? 0),
      });
    this.#requests.expire(nowMillis, LOOKS_PER_GRANT);
    this.#sweep(entry, LOOKS_PER_GRANT, LOOKS_PER_GRANT);
    return decision;
  }

  /** What is remembered until later than now counts no more; its stamp stays, with what others spent at it. */
  #refund(asked: Asked, place: Place, entry: Entry): Decision {
    const nowMillis = entry.timeMillis;
    const remembered = this.#requests.find(asked, { index: Infinity, nowMillis: nowMillis + 1 });
    if (remembered === undefined) return refundOf(undefined, place, nowMillis);
    const { decision } = remembered;
    const { cost } = remembered.asked;
    if (!remembered.isRefunded) {
      this.#requests.refund(remembered);
      this.#takeBack(decision, asked.userId, cost, entry);
      this.#changedMillis = nowMillis;
    }
    return refundOf({ decision, cost }, place, nowMillis);
  }

  /** By the meter that counted it. Only a log of every millisecond knows what it granted before its rule changed. */
  #takeBack({ ruleId, decided }: Decision, userId: string, cost: number, { index }: Entry): void {
    const keys = this.#activeAt(ruleId, decided.index);
    const key = keys?.keys.get(userId);
    const before = key?.runs.at(-1)?.value;
    if (keys === undefined || key === undefined || before === undefined) return;
    const { rule, ruledIndex } = keys.state;
    if (meterKindOf(rule) !== 'slidingLog' && decided.index <= ruledIndex) return;
    const runs = afterRefund(rule, before, { timeMillis: decided.timeMillis, cost });
    this.#tally.count(keyItem(keys, key, before), -1);
    key.runs.push({ index, value: runs });
    this.#tally.count(keyItem(keys, key, runs), 1);
  }

  #hasRoom(known: Known, judged: Judged, asked: Asked): boolean {
    let bytes = bytesToGrant(known, judged, asked);
    if (asked.requestId !== undefined) bytes += requestBytes(asked, known.rule.id);
    if (bytes === 0) return true;
    const isNew = known.runs === undefined || asked.requestId !== undefined;
    const cap = this.#table?.partitionBytesMax ?? 0;
    return this.bytes + bytes <= (isNew ? cap : cap + Math.floor(cap / 8));
  }

  #grant(keys: KeysOfRule, { userId, cost }: Asked, judged: Judged, entry: Entry): readonly Run[] {
    let key = keys.keys.get(userId);
    const before = key?.runs.at(-1)?.value;
    const { rule, groupWindowMillis } = keys.state;
    const runs = afterJudged({ rule, groupWindowMillis, runs: before }, judged, cost);
    if (key === undefined) {
      key = { userId, madeMillis: 0, runs: [] };
      keys.keys.set(userId, key);
    }
    if (before === undefined) {
      keys.order.push(key);
      this.#tally.bytes += KEY_BYTES + userId.length;
    } else {
      this.#tally.count(keyItem(keys, key, before), -1);
      this.#tally.bytes -= bytesOf(rule, before);
    }
    this.#tally.bytes += bytesOf(rule, runs);
    const keptMillis = keptAfterMillis(keys, { before, judged, nearEpochMillis: this.#nearEpochMillis });
    key.madeMillis = Math.max(key.madeMillis, entry.timeMillis + keptMillis);
    key.runs.push({ index: entry.index, value: runs });
    this.#tally.count(keyItem(keys, key, runs), 1);
    return runs;
  }

  #changeRules(table: RuleTable, { index, timeMillis }: Entry): void {
    if (this.#table === undefined) this.#createdMillis = timeMillis;
    this.#changedMillis = timeMillis;
    this.#table = table;
    this.#tables.push({ index, value: table });
    // Out of force a rule still says what its grants count by, as long as clocks of today make of that.
    for (const keys of this.#rules) {
      const { rule } = keys.state;
      const outOfForce = { ...inForceFrom(index, { rule, table, before: keys.state }), isActive: false };
      this.#setRule(keys, outOfForce, { index });
    }
    for (const rule of table.rules) {
      const kind = meterKindOf(rule);
      let keys = this.#rules.find(
        ({ state }) => state.rule.id === rule.id && meterKindOf(state.rule) === kind,
      );
      const inForce = inForceFrom(index, { rule, table, before: keys?.state });
      if (keys === undefined) {
        const state = { ...inForce, isEventTimed: false, evictedThroughMillis: 0 };
        keys = { state, states: [], keys: new Map(), order: [] };
        this.#rules.push(keys);
        const others = (this.#known.get(rule.id) ?? []).filter((one) => meterKindOf(one.state.rule) !== kind);
        this.#known.set(rule.id, [...others, keys]);
        this.#tally.count({ kind: 'rule', ...state }, 1);
      }
      this.#setRule(keys, inForce, { index });
    }
    this.#rules = this.#rules.filter((keys) => {
      const isKept = keys.state.isActive || keys.order.length > 0 || keys.state.evictedThroughMillis > 0;
      if (!isKept) this.#tally.count({ kind: 'rule', ...keys.state }, -1);
      return isKept;
    });
    this.#sweepRule = 0;
    this.#sweepKey = 0;
  }

  #setRule(keys: KeysOfRule, change: Partial<RuleState>, { index }: { readonly index: number }): void {
    this.#tally.count({ kind: 'rule', ...keys.state }, -1);
    keys.state = { ...keys.state, ...change };
    keys.states.push({ index, value: keys.state });
    this.#tally.count({ kind: 'rule', ...keys.state }, 1);
  }

  #sweep(entry: Entry, looks: number, drops: number): void {
    let dropped = 0;
    for (let look = 0; look < looks && dropped < drops && this.#rules.length > 0; look += 1) {
      const keys = this.#rules[this.#sweepRule];
      const key = keys?.order[this.#sweepKey];
      if (keys === undefined || key === undefined) {
        this.#sweepRule = (this.#sweepRule + 1) % this.#rules.length;
        this.#sweepKey = 0;
      } else if (isIdle(keys, key, { nowMillis: entry.timeMillis, nearEpochMillis: this.#nearEpochMillis })) {
        this.#forget(keys, key, entry);
        dropped += 1;
      } else this.#sweepKey += 1;
    }
  }

  #forget(keys: KeysOfRule, key: Key, entry: Entry): void {
    const runs = key.runs.at(-1)?.value ?? [];
    const goneMillis = idleAt(keys.state.rule, runs, keys.state.groupWindowMillis);
    const evictedThroughMillis = Math.max(keys.state.evictedThroughMillis, goneMillis);
    if (newestOf(runs) >= this.#nearEpochMillis) this.#setRule(keys, { evictedThroughMillis }, entry);
    this.#tally.count(keyItem(keys, key, runs), -1);
    this.#tally.bytes -= KEY_BYTES + key.userId.length + bytesOf(keys.state.rule, runs);
    key.runs.push({ index: entry.index, value: undefined });
    const last = keys.order.pop();
    if (last !== undefined && last !== key) keys.order[keys.order.indexOf(key)] = last;
  }
}
