/**
 * What the doors of one node answered, per rule: since the node started, and by the minute for a day. Memory is bounded: a row
 * for each of so many rules, each of `USAGE_MINUTES_MAX` minutes. It reads no clock, and is told of every answer in
 * constant time, without allocating once a rule has its row.
 */
import { isStatedId } from '../api/stated-rule.ts';
import {
  OTHER_RULES,
  STATED_RULES,
  USAGE_MINUTES_MAX,
  USAGE_COLUMNS,
  type UsageColumn,
  type UsageQuery,
} from '../api/usage.ts';
import { HourlyTop } from './hourly-top.ts';
import { type NodeUsage, type RuleUsage, zeros } from './node-usage.ts';
import { cut } from './top-keys.ts';

const WIDTH = USAGE_COLUMNS.length;
const ALLOWED = USAGE_COLUMNS.indexOf('allowed');
const DENIED = USAGE_COLUMNS.indexOf('denied');
const UNAVAILABLE = USAGE_COLUMNS.indexOf('unavailable');
const DEGRADED = USAGE_COLUMNS.indexOf('degraded');
const WOULD_ALLOW = USAGE_COLUMNS.indexOf('wouldAllow');
const WOULD_DENY = USAGE_COLUMNS.indexOf('wouldDeny');
/** Stated rules that are known as such without being parsed. */
const STATED_SEEN_MAX = 1_024;

/** Keys of one list that a node tells another. */
export const TOP_TOLD_MAX = 400;

interface Row {
  readonly ruleId: string;
  /** Its place in the table; keys are counted under it. */
  readonly place: number;
  /** By column, since the node started. */
  readonly totals: Float64Array;
  /** By slot of the ring and column. */
  readonly minutes: Uint32Array;
  lastMinute: number;
}

export class UsageTable {
  readonly #rulesMax: number;
  /** Those of no rule of a table come first. */
  readonly #rows: Row[] = [];
  readonly #rowOf = new Map<string, Row>();
  readonly #stated: Row;
  readonly #other: Row;
  /** Of the decision before: the next one is likely of the same rule. In the table, like all rows. */
  #latest: Row;
  #statedSeen = new Map<string, Row>();
  /** By slot: the minute that is counted there; nothing is believed of a slot under another one. */
  readonly #minuteOf = new Float64Array(USAGE_MINUTES_MAX).fill(-1);
  #minute = -1;
  /** Of the minute under way, in `Row.minutes`. */
  #offset = 0;
  /** Every row was in use when one was looked for last. */
  #fullMinute = -1;
  readonly #top = new HourlyTop();
  #names: ReadonlySet<string> = new Set();
  #defaultRule: string | undefined;

  /** @param rulesMax rules that are counted apart; beyond them, all count as `OTHER_RULES` */
  constructor(rulesMax: number) {
    this.#rulesMax = rulesMax;
    this.#stated = this.#append(STATED_RULES);
    this.#other = this.#append(OTHER_RULES);
    this.#latest = this.#other;
    this.turnTo(0);
  }

  /**
   * What is told from now on happened in this minute, since 1970. A clock may step: a minute that comes again goes on where it was,
   * and what a later minute has put in its place is lost with it.
   */
  turnTo(minute: number): void {
    if (minute === this.#minute) return;
    const slot = minute % USAGE_MINUTES_MAX;
    this.#minute = minute;
    this.#offset = slot * WIDTH;
    this.#top.turnTo(minute);
    if (this.#minuteOf[slot] === minute) return;
    this.#minuteOf[slot] = minute;
    for (const { minutes } of this.#rows) minutes.fill(0, this.#offset, this.#offset + WIDTH);
  }

  /** The rules in force, the default first. What nobody decided is counted under these names, or under `OTHER_RULES`. */
  setRules(ruleIds: readonly string[]): void {
    this.#names = new Set(ruleIds);
    this.#defaultRule = ruleIds[0];
  }

  /** @param ruleId of the decision, so it is one of a table, or stated @param key that it counted by; undefined: not known */
  decided(ruleId: string, isAllowed: boolean, key: string | undefined): void {
    if (this.#latest.ruleId !== ruleId)
      this.#latest = this.#rowOf.get(ruleId) ?? this.#statedSeen.get(ruleId) ?? this.#rowFor(ruleId);
    const row = this.#latest;
    this.#count(row, isAllowed ? ALLOWED : DENIED);
    if (key !== undefined) this.#top.add(isAllowed ? 'allowed' : 'denied', row.place, key);
  }

  /** Nobody could decide. @param ruleId as the caller has it: any text; undefined: the default */
  undecided(ruleId: string | undefined): void {
    this.#count(this.#rowAsked(ruleId ?? this.#defaultRule), UNAVAILABLE);
  }

  /** So many requests were refused before anybody read which rule they are for. */
  unread(requests: number): void {
    this.#count(this.#other, UNAVAILABLE, requests);
  }

  /** Nobody could decide, and a fail mode did. @param ruleId of the first rule that it was for */
  degraded(ruleId: string | undefined): void {
    this.#count(this.#rowAsked(ruleId), DEGRADED);
  }

  /** What a rule in shadow would have done. @param ruleId of the decision */
  tried(ruleId: string, wouldAllow: boolean): void {
    this.#count(this.#rowOf.get(ruleId) ?? this.#rowFor(ruleId), wouldAllow ? WOULD_ALLOW : WOULD_DENY);
  }

  /** Of each rule that was ever answered for, since the node started. */
  *totals(): Iterable<readonly [string, UsageColumn, number]> {
    for (const { ruleId, totals } of this.#rows) {
      if (totals.every((count) => count === 0)) continue;
      for (const [column, name] of USAGE_COLUMNS.entries()) yield [ruleId, name, totals[column] ?? 0];
    }
  }

  /** @param untilMinute the last of the minutes asked for */
  usage({ minutes, ruleId, top }: UsageQuery, untilMinute: number): NodeUsage {
    const rows = ruleId === undefined ? this.#rows : this.#rows.filter((row) => row.ruleId === ruleId);
    const history = zeros(minutes * WIDTH);
    const rules = rows.map((row) => this.#addUp(row, untilMinute + 1 - minutes, history));
    const isAsked = (place: number): string | undefined => {
      const row = this.#rows[place];
      return ruleId === undefined || row?.ruleId === ruleId ? row?.ruleId : undefined;
    };
    const told = (list: 'allowed' | 'denied'): NodeUsage['allowed'] =>
      top === 0 ? { keys: [], othersMax: 0 } : cut(this.#top.list(list, isAsked), TOP_TOLD_MAX);
    return {
      rules: rules.filter(({ counts }) => counts.some((count) => count > 0)),
      history,
      topFromMinute: this.#top.fromMinute,
      allowed: told('allowed'),
      denied: told('denied'),
    };
  }

  /** Adds the minutes of `row` to `history`, minute by minute. */
  #addUp({ ruleId, minutes }: Row, fromMinute: number, history: number[]): RuleUsage {
    const counts = zeros(WIDTH);
    for (let at = 0; at < history.length; at += WIDTH) {
      const minute = fromMinute + at / WIDTH;
      const slot = minute % USAGE_MINUTES_MAX;
      if (minute < 0 || this.#minuteOf[slot] !== minute) continue;
      for (let column = 0; column < WIDTH; column += 1) {
        const count = minutes[slot * WIDTH + column] ?? 0;
        history[at + column] = (history[at + column] ?? 0) + count;
        counts[column] = (counts[column] ?? 0) + count;
      }
    }
    return { ruleId, counts };
  }

  #count(row: Row, column: number, requests = 1): void {
    const at = this.#offset + column;
    row.totals[column] = (row.totals[column] ?? 0) + requests;
    row.minutes[at] = (row.minutes[at] ?? 0) + requests;
    row.lastMinute = this.#minute;
  }

  #rowAsked(ruleId: string | undefined): Row {
    if (ruleId === undefined) return this.#other;
    const row = this.#rowOf.get(ruleId);
    if (row !== undefined) return row;
    // Callers may name what they like: only a rule in force gets a row.
    const isRule = this.#names.has(ruleId) || isStatedId(ruleId);
    return isRule ? this.#rowFor(ruleId) : this.#other;
  }

  /** Of a rule that has none yet. */
  #rowFor(ruleId: string): Row {
    if (ruleId === OTHER_RULES) return this.#other;
    if (ruleId === STATED_RULES) return this.#stated;
    if (!this.#names.has(ruleId) && isStatedId(ruleId)) {
      if (this.#statedSeen.size >= STATED_SEEN_MAX) this.#statedSeen = new Map();
      this.#statedSeen.set(ruleId, this.#stated);
      return this.#stated;
    }
    if (this.#rowOf.size < this.#rulesMax) {
      const row = this.#append(ruleId);
      this.#rowOf.set(ruleId, row);
      return row;
    }
    return this.#replaceIdle(ruleId) ?? this.#other;
  }

  /** Rules come and go: one without an answer in all that is kept has no figures to lose but its totals. */
  #replaceIdle(ruleId: string): Row | undefined {
    if (this.#fullMinute === this.#minute) return undefined;
    const idle = this.#rows.find(
      (row) => this.#rowOf.has(row.ruleId) && Math.abs(this.#minute - row.lastMinute) >= USAGE_MINUTES_MAX,
    );
    if (idle === undefined) {
      this.#fullMinute = this.#minute;
      return undefined;
    }
    if (this.#latest === idle) this.#latest = this.#other;
    this.#rowOf.delete(idle.ruleId);
    const row = this.#newRow(ruleId, idle.place);
    this.#rows[idle.place] = row;
    this.#rowOf.set(ruleId, row);
    return row;
  }

  #append(ruleId: string): Row {
    const row = this.#newRow(ruleId, this.#rows.length);
    this.#rows.push(row);
    return row;
  }

  #newRow(ruleId: string, place: number): Row {
    return {
      ruleId,
      place,
      totals: new Float64Array(WIDTH),
      minutes: new Uint32Array(USAGE_MINUTES_MAX * WIDTH),
      lastMinute: this.#minute,
    };
  }
}
