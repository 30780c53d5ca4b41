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
import { type Asked, limitsOf } from './id-ledger.ts';
import { afterJudged, bytesToGrant, inForceFrom, isIdle, KEY_BYTES, keptAfterMillis } from './naive-keys.ts';
import { loggedRequests, rowsOf } from './logged-requests.ts';
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
import { denialOfAll, grantOfAll, tellingGrant } from './naive-joint.ts';
import { afterRefund, bytesOf, idleAt, meterKindOf, newestOf, type Run } from './naive-meters.ts';
import { NaivePast } from './naive-past.ts';
import { type GrantedLimit, NaiveRequests, requestBytes } from './naive-requests.ts';
import { type Key, keyItem, type KeysOfRule, resolved, type RuleState, Tally } from './naive-state.ts';

/** Of keys and of request ids, after each grant; then what a sweep does. */
const LOOKS_PER_GRANT = 2;
const SWEEP_LOOKS = 8_192;
const SWEEP_DROPS = 1_024;

/** One limit of a request, as it is found before anything is charged. */
interface Limit {
  readonly asked: Asked;
  readonly known: Known;
  readonly keys: KeysOfRule;
  readonly judged: Judged;
}

/** What a replica decides, and what it charges: nothing, or once under each limit, in their order. */
interface Decided {
  readonly decision: Decision;
  readonly charged: readonly GrantedLimit[];
}

function uncharged(decision: Decision): Decided {
  return { decision, charged: [] };
}

/** @param i the request's first row in its entry */
type OnDecided = (i: number, asked: Asked, decided: Decided) => void;

export class NaiveLimiter {
  readonly past = new NaivePast();
  #table: RuleTable | undefined;
  #changedMillis = 0;
  #rules: KeysOfRule[] = [];
  #sweepRule = 0;
  #sweepKey = 0;
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
      createdMillis: this.past.createdMillis,
      changedMillis: this.#changedMillis,
      // Far more rules would have to come and go than a run has.
      droppedThroughMillis: 0,
      sweepTable: this.#sweepRule,
      sweepSlot: this.#sweepKey,
      bytes: this.bytes,
    };
    return this.#tally.digestWith(item);
  }

  /** Tells what every replica decides. */
  apply(command: Command, entry: Entry, onDecided: OnDecided): void {
    const { index, term, timeMillis } = entry;
    let position = 0;
    this.past.times.push({ index, value: timeMillis });
    switch (command.type) {
      case 'rules':
        if (command.table.version > (this.#table?.version ?? 0)) this.#changeRules(command.table, entry);
        return;
      case 'sweep':
        this.#changedMillis = timeMillis;
        this.#requests.expire(timeMillis, SWEEP_DROPS);
        this.#sweep(entry, SWEEP_LOOKS, SWEEP_DROPS);
        return;
      case 'allow': {
        const rulesVersion = this.#table?.version ?? 0;
        for (const asked of loggedRequests(entry.data)) {
          onDecided(position, asked, this.#decide(asked, { index, term, position, rulesVersion }, entry));
          position += rowsOf(asked);
        }
        return;
      }
      case 'customers':
        // No world has operators who say anything of a key: it would have to be judged by that.
        throw new Error(`entry ${index} is of operators, and nobody asked for that`);
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
    if (nowMillis < this.past.timeAt(index)) return undefined;
    if (this.#requests.find(asked, { index, nowMillis }) !== undefined) return undefined;
    const said: { denial: Decision; fits: boolean }[] = [];
    const place = { index, term, position: undefined, rulesVersion: this.past.tableAt(index)?.version ?? 0 };
    for (const limit of limitsOf(asked)) {
      const known = this.past.knownAt(limit, index);
      if (known === undefined) return undefined;
      const judged = judge(known, limit, nowMillis);
      const denial = denialOf(known, judged, limit.cost, place);
      said.push({ denial, fits: judged.fits });
    }
    return said.every(({ fits }) => fits) ? undefined : denialOfAll(said);
  }

  #decide(asked: Asked, place: Place, entry: Entry): Decided {
    const nowMillis = entry.timeMillis;
    if (asked.isRefund === true) return uncharged(this.#refund(asked, place, entry));
    const repeated = this.#repeated(asked, place, nowMillis);
    if (repeated !== undefined) return uncharged(repeated);
    if (asked.isRecall === true) {
      const none = { ruleId: resolved(asked.rule, this.#table), place, nowMillis };
      return uncharged(refused('not_remembered', none));
    }
    const limits: Limit[] = [];
    for (const one of limitsOf(asked)) {
      const known = this.past.knownAt(one, entry.index);
      const keys = this.past.activeAt(one.rule, entry.index);
      const ruleId = resolved(one.rule, this.#table);
      if (known === undefined || keys === undefined)
        return uncharged(refused('unknown_rule', { ruleId, place, nowMillis }));
      limits.push({ asked: one, known, keys, judged: judge(known, one, nowMillis) });
    }
    if (limits.some(({ judged }) => !judged.fits)) {
      const said = limits.map(({ asked: { cost }, known, judged }) => {
        return { denial: denialOf(known, judged, cost, place), fits: judged.fits };
      });
      return uncharged(denialOfAll(said));
    }
    const ruleId = resolved(asked.rule, this.#table);
    if (!this.#hasRoom(limits)) return uncharged(refused('at_capacity', { ruleId, place, nowMillis }));
    return this.#chargeAll(asked, limits, place, entry);
  }

  /** What is answered by what is remembered under its id. */
  #repeated(asked: Asked, place: Place, nowMillis: number): Decision | undefined {
    const remembered = this.#requests.find(asked, { index: Infinity, nowMillis });
    if (remembered === undefined) return undefined;
    const [first] = remembered.limits;
    const difference = differenceOf(remembered.asked, asked);
    if (difference !== undefined)
      return refused(
        'request_id_reused',
        { ruleId: resolved(asked.rule, this.#table), place, nowMillis },
        difference,
      );
    if (first?.isRefunded !== true) return remembered.decision;
    return refused('refunded', { ruleId: first.decision.ruleId, place, nowMillis });
  }

  #chargeAll(asked: Asked, limits: readonly Limit[], place: Place, entry: Entry): Decided {
    const { index, timeMillis: nowMillis } = entry;
    const charged = limits.map((limit, i): GrantedLimit => {
      const { keys, known, judged } = limit;
      const runs = this.#grant(keys, limit.asked, judged, entry);
      if (judged.isEvent && !keys.state.isEventTimed) this.#setRule(keys, { isEventTimed: true }, entry);
      const own = { ...place, position: (place.position ?? 0) + i };
      const decision = grantOf(known.rule, judged, { runs, cost: limit.asked.cost, place: own });
      return { asked: limit.asked, decision };
    });
    const decision = grantOfAll(charged.map((one) => one.decision));
    this.#changedMillis = nowMillis;
    if (asked.requestId !== undefined) {
      const untilMillis = nowMillis + (this.#table?.requestIdHorizonMillis ?? 0);
      this.#requests.remember({ asked, decision }, charged, { index, untilMillis });
    }
    const looks = LOOKS_PER_GRANT * limits.length;
    this.#requests.expire(nowMillis, looks);
    this.#sweep(entry, looks, looks);
    return { decision, charged };
  }

  /** What is remembered until later than now counts no more; its stamp stays, with what others spent at it. */
  #refund(asked: Asked, place: Place, entry: Entry): Decision {
    const nowMillis = entry.timeMillis;
    const remembered = this.#requests.find(asked, { index: Infinity, nowMillis: nowMillis + 1 });
    if (remembered === undefined) return refundOf(undefined, place, nowMillis);
    const { limits } = remembered;
    if (limits[0]?.isRefunded !== true) {
      this.#requests.refund(remembered);
      for (const limit of limits) this.#takeBack(limit, entry);
      this.#changedMillis = nowMillis;
    }
    // Told as its grant was: by the limit that told that.
    const told = limits[tellingGrant(limits.map(({ decision }) => decision))]!;
    return refundOf({ decision: told.decision, cost: told.asked.cost }, place, nowMillis);
  }

  /** By the meter that counted it. Only a log of every millisecond knows what it granted before its rule changed. */
  #takeBack({ asked: { userId, cost }, decision }: GrantedLimit, { index }: Entry): void {
    const { ruleId, decided } = decision;
    const keys = this.past.activeAt(ruleId, decided.index);
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

  /** For all of them: each on top of those before it. */
  #hasRoom(limits: readonly Limit[]): boolean {
    const cap = this.#table?.partitionBytesMax ?? 0;
    let bytes = 0;
    return limits.every(({ asked, known, judged }) => {
      bytes += bytesToGrant(known, judged, asked);
      if (asked.requestId !== undefined) bytes += requestBytes(asked, known.rule.id);
      const isNew = known.runs === undefined || asked.requestId !== undefined;
      return bytes === 0 || this.bytes + bytes <= (isNew ? cap : cap + Math.floor(cap / 8));
    });
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
    const keptMillis = keptAfterMillis(keys, { before, judged, nearEpochMillis: this.past.nearEpochMillis });
    key.madeMillis = Math.max(key.madeMillis, entry.timeMillis + keptMillis);
    key.runs.push({ index: entry.index, value: runs });
    this.#tally.count(keyItem(keys, key, runs), 1);
    return runs;
  }

  #changeRules(table: RuleTable, { index, timeMillis }: Entry): void {
    if (this.#table === undefined) this.past.createdMillis = timeMillis;
    this.#changedMillis = timeMillis;
    this.#table = table;
    this.past.tables.push({ index, value: table });
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
        const others = (this.past.rules.get(rule.id) ?? []).filter(
          (one) => meterKindOf(one.state.rule) !== kind,
        );
        this.past.rules.set(rule.id, [...others, keys]);
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
      } else if (
        isIdle(keys, key, { nowMillis: entry.timeMillis, nearEpochMillis: this.past.nearEpochMillis })
      ) {
        this.#forget(keys, key, entry);
        dropped += 1;
      } else this.#sweepKey += 1;
    }
  }

  #forget(keys: KeysOfRule, key: Key, entry: Entry): void {
    const runs = key.runs.at(-1)?.value ?? [];
    const goneMillis = idleAt(keys.state.rule, runs, keys.state.groupWindowMillis);
    const evictedThroughMillis = Math.max(keys.state.evictedThroughMillis, goneMillis);
    if (newestOf(runs) >= this.past.nearEpochMillis) this.#setRule(keys, { evictedThroughMillis }, entry);
    this.#tally.count(keyItem(keys, key, runs), -1);
    this.#tally.bytes -= KEY_BYTES + key.userId.length + bytesOf(keys.state.rule, runs);
    key.runs.push({ index: entry.index, value: undefined });
    const last = keys.order.pop();
    if (last !== undefined && last !== key) keys.order[keys.order.indexOf(key)] = last;
  }
}
