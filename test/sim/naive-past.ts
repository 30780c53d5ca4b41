/**
 * All that the naive limiter has ever known, from which entry on: its rules, their keys, and the time. The limiter adds to it,
 * and asks it as of any entry; it decides nothing.
 */
import type { RuleTable } from '../../src/limiter/rules.ts';
import type { Decision } from '../../src/limiter/decision.ts';
import type { Asked } from './id-ledger.ts';
import { denialOf, judge, type Known } from './naive-judgement.ts';
import { meterKindOf, waitUntil } from './naive-meters.ts';
import { ruleOfKey } from './naive-record.ts';
import type { NaiveRecords } from './naive-records.ts';
import { type KeysOfRule, resolved, type Since, valueAt } from './naive-state.ts';

const WINDOW_MILLIS_MAX = 31 * 86_400_000;

export class NaivePast {
  readonly tables: Since<RuleTable>[] = [];
  /** Group time. */
  readonly times: Since<number>[] = [];
  /** All rules there ever were, and of each all meters that it had, also those that were forgotten: they were known before. */
  readonly rules = new Map<string, KeysOfRule[]>();
  createdMillis = 0;
  readonly records: NaiveRecords;

  constructor(records: NaiveRecords) {
    this.records = records;
  }

  get nearEpochMillis(): number {
    return this.createdMillis - WINDOW_MILLIS_MAX;
  }

  tableAt(index: number): RuleTable | undefined {
    return valueAt(this.tables, index);
  }

  timeAt(index: number): number {
    return valueAt(this.times, index) ?? 0;
  }

  /** The keys of the rule that is meant, by the meter that it has there. */
  activeAt(rule: string, index: number): KeysOfRule | undefined {
    const ruleId = resolved(rule, this.tableAt(index));
    return this.rules.get(ruleId)?.find(({ states }) => valueAt(states, index)?.isActive === true);
  }

  /** By the first of its limits, as all that follows. */
  knownAt(asked: Asked, index: number): Known | undefined {
    const active = this.activeAt(asked.rule, index);
    if (active === undefined) return undefined;
    const record = this.records.at(asked.userId, index);
    const byMeter = (this.rules.get(active.state.rule.id) ?? []).flatMap((keys) => {
      const state = valueAt(keys.states, index);
      const runs = valueAt(keys.keys.get(asked.userId)?.runs ?? [], index);
      return state === undefined ? [] : [{ ...state, rule: ruleOfKey(state.rule, record), keys, runs }];
    });
    const [known] = byMeter.filter(({ keys }) => keys === active);
    const retired = byMeter.filter(({ keys }) => keys !== active);
    return known && { ...known, retired, nearEpochMillis: this.nearEpochMillis };
  }

  isKnownAt(index: number, asked: Asked): boolean {
    const keys = this.activeAt(asked.rule, index);
    return valueAt(keys?.keys.get(asked.userId)?.runs ?? [], index) !== undefined;
  }

  /** By its rule alone, and at that time in group time, how long it takes until nothing counts of what this user was granted. */
  emptyMillisAt(index: number, asked: Asked, timeMillis: number): number {
    const known = this.knownAt(asked, index);
    if (known === undefined) return 0;
    const waits = [known, ...known.retired].map(({ rule, groupWindowMillis: windowMillis, runs = [] }) =>
      waitUntil(rule, runs, { timeMillis, windowMillis }, 0),
    );
    return Math.max(...waits);
  }

  /** Nothing but a log of every millisecond ever kept the grants of this rule. */
  isPlainLog(ruleId: string): boolean {
    return (this.rules.get(ruleId) ?? []).every(({ state }) => meterKindOf(state.rule) === 'slidingLog');
  }

  /** How a user stands there under a rule, as whoever asks for one more is told; undefined if there is no such rule. */
  standingAt(
    at: { readonly index: number; readonly term: number; readonly timeMillis: number },
    userId: string,
    rule: string,
  ): Decision | undefined {
    const { index, term, timeMillis } = at;
    const asked = { userId, rule, cost: 1, timestampMillis: undefined, requestId: undefined };
    const known = this.knownAt(asked, index);
    if (known === undefined || timeMillis < this.timeAt(index)) return undefined;
    const place = { index, term, position: undefined, rulesVersion: this.tableAt(index)?.version ?? 0 };
    return denialOf(known, judge(known, asked, timeMillis), 1, place);
  }
}
