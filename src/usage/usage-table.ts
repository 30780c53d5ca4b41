/**
 * Counts the answers of one node per rule: since it started, and by minute for a day. Memory is bounded: one row
 * for each of a fixed number of rules. Counting takes constant time and allocates nothing once a rule has a row.
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
/** How many stated rules are remembered, so that they need not be parsed again. */
const STATED_SEEN_MAX = 1_024;

/** The maximum number of keys per list that a node sends to another. */
export const TOP_REPORTED_MAX = 400;

interface Row {
  readonly ruleId: string;
  /** Index in the table; keys are counted under it. */
  readonly place: number;
  /** By column, since the node started. */
  readonly totals: Float64Array;
  /** By slot of the ring, then by column. */
  readonly minutes: Uint32Array;
  lastMinute: number;
}

/** The usage table of one node. */
export class UsageTable {
  readonly #rulesMax: number;
  /** The two rows for stated and other rules come first. */
  readonly #rows: Row[] = [];
  readonly #rowOf = new Map<string, Row>();
  readonly #stated: Row;
  readonly #other: Row;
  /** Row of the decision before; the next one is likely by the same rule. */
  #latest: Row;
  #statedSeen = new Map<string, Row>();
  /** By slot: the minute that is counted there. A slot with another minute is outdated. */
  readonly #minuteOf = new Float64Array(USAGE_MINUTES_MAX).fill(-1);
  #minute = -1;
  /** Offset of the current minute in `Row.minutes`. */
  #offset = 0;
  /** The minute in which the last search for an idle row found none. */
  #fullMinute = -1;
  readonly #top = new HourlyTop();
  #names: ReadonlySet<string> = new Set();
  #defaultRule: string | undefined;

  /** @param rulesMax most rules with a row of their own; all others count as `OTHER_RULES` */
  constructor(rulesMax: number) {
    this.#rulesMax = rulesMax;
    this.#stated = this.#append(STATED_RULES);
    this.#other = this.#append(OTHER_RULES);
    this.#latest = this.#other;
    this.turnTo(0);
  }

  /**
   * Sets the current minute, counted since 1970. If the clock steps back, a minute continues where it was, unless a
   * later minute has taken its slot.
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

  /**
   * Sets the rules in force, the default first. Requests without a decision are counted under these names, or under
   * `OTHER_RULES`.
   */
  setRules(ruleIds: readonly string[]): void {
    this.#names = new Set(ruleIds);
    this.#defaultRule = ruleIds[0];
  }

  /**
   * Counts a decision. @param ruleId a rule of the table, or a stated one @param key that it counted by; undefined:
   * unknown
   */
  decided(ruleId: string, isAllowed: boolean, key: string | undefined): void {
    if (this.#latest.ruleId !== ruleId)
      this.#latest = this.#rowOf.get(ruleId) ?? this.#statedSeen.get(ruleId) ?? this.#rowFor(ruleId);
    const row = this.#latest;
    this.#count(row, isAllowed ? ALLOWED : DENIED);
    if (key !== undefined) this.#top.add(isAllowed ? 'allowed' : 'denied', row.place, key);
  }

  /** Counts a request without a decision. @param ruleId as the caller sent it: any text; undefined: the default */
  undecided(ruleId: string | undefined): void {
    this.#count(this.#rowAsked(ruleId ?? this.#defaultRule), UNAVAILABLE);
  }

  /** Counts requests that were refused before it was read which rule they are for. */
  unread(requests: number): void {
    this.#count(this.#other, UNAVAILABLE, requests);
  }

  /** Counts a decision by fail mode. @param ruleId of the first rule that it was for */
  degraded(ruleId: string | undefined): void {
    this.#count(this.#rowAsked(ruleId), DEGRADED);
  }

  /** Counts what a shadow rule would have done. @param ruleId of the decision */
  tried(ruleId: string, wouldAllow: boolean): void {
    this.#count(this.#rowOf.get(ruleId) ?? this.#rowFor(ruleId), wouldAllow ? WOULD_ALLOW : WOULD_DENY);
  }

  /** Totals since the node started, for each rule with an answer. */
  *totals(): Iterable<readonly [string, UsageColumn, number]> {
    for (const { ruleId, totals } of this.#rows) {
      if (totals.every((count) => count === 0)) continue;
      for (const [column, name] of USAGE_COLUMNS.entries()) yield [ruleId, name, totals[column] ?? 0];
    }
  }

  /** The figures for other nodes. @param untilMinute the last of the minutes asked for */
  usage({ minutes, ruleId, top }: UsageQuery, untilMinute: number): NodeUsage {
    const rows = ruleId === undefined ? this.#rows : this.#rows.filter((row) => row.ruleId === ruleId);
    const history = zeros(minutes * WIDTH);
    const rules = rows.map((row) => this.#addUp(row, untilMinute + 1 - minutes, history));
    const isAsked = (place: number): string | undefined => {
      const row = this.#rows[place];
      return ruleId === undefined || row?.ruleId === ruleId ? row?.ruleId : undefined;
    };
    const listOf = (list: 'allowed' | 'denied'): NodeUsage['allowed'] =>
      top === 0 ? { keys: [], othersMax: 0 } : cut(this.#top.list(list, isAsked), TOP_REPORTED_MAX);
    return {
      rules: rules.filter(({ counts }) => counts.some((count) => count > 0)),
      history,
      topFromMinute: this.#top.fromMinute,
      allowed: listOf('allowed'),
      denied: listOf('denied'),
    };
  }

  /** Adds the minutes of `row` to `history`. */
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
    // Callers can name any rule; only one that is in force gets a row.
    const isRule = this.#names.has(ruleId) || isStatedId(ruleId);
    return isRule ? this.#rowFor(ruleId) : this.#other;
  }

  /** The row of a rule that has none yet. */
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

  /** Reuses the row of a rule that had no answer in all kept minutes; only its totals are lost. */
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
