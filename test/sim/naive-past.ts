/**
 * Everything that the naive limiter has ever known, by entry: its rules, their keys, and the time. The limiter adds to
 * it and queries it as of any entry. It decides nothing.
 */
import type { Rule } from '../../src/api/rule.ts';
import type { RuleTable } from '../../src/limiter/rules.ts';
import type { Decision } from '../../src/limiter/decision.ts';
import type { Asked } from './id-ledger.ts';
import { denialOf, judge } from './naive-judgement.ts';
import type { Known } from './naive-known.ts';
import { atTime, meterKindOf, reachMillisOf, waitUntil } from './naive-meters.ts';
import { ruleOfKey } from './naive-record.ts';
import type { NaiveRecords } from './naive-records.ts';
import { type KeysOfRule, resolved, type Since, valueAt } from './naive-state.ts';
import { aheadNow, axisOf, NO_STEPS, type Steps } from './naive-utc.ts';

const WINDOW_MILLIS_MAX = 31 * 86_400_000;

export class NaivePast {
  readonly tables: Since<RuleTable>[] = [];
  /** Group time. */
  readonly times: Since<number>[] = [];
  readonly #steps: Since<Steps>[] = [{ index: 0, value: NO_STEPS }];
  /** All rules that ever existed, each with all meters that it had, including forgotten ones. */
  readonly rules = new Map<string, KeysOfRule[]>();
  createdMillis = 0;
  readonly records: NaiveRecords;

  constructor(records: NaiveRecords) {
    this.records = records;
  }

  get nearEpochMillis(): number {
    return this.createdMillis - WINDOW_MILLIS_MAX;
  }

  stepsAt(index: number): Steps {
    return valueAt(this.#steps, index) ?? NO_STEPS;
  }

  /** UTC is this much ahead after that entry, if that is more than before. Returns whether it is. */
  stepUtc(
    aheadMillis: number,
    { index, timeMillis }: { readonly index: number; readonly timeMillis: number },
  ): boolean {
    const before = this.stepsAt(index);
    if (aheadMillis <= aheadNow(before)) return false;
    this.#steps.push({ index, value: [...before, { groupMillis: timeMillis, aheadMillis }] });
    return true;
  }

  /** In the form that replicas use. */
  get utcSteps(): { readonly fromMillis: number; readonly aheadMillis: number }[] {
    let beforeMillis = 0;
    return this.stepsAt(Infinity).map(({ groupMillis, aheadMillis }) => {
      const fromMillis = groupMillis + beforeMillis + 1;
      beforeMillis = aheadMillis;
      return { fromMillis, aheadMillis };
    });
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

  /** By the first limit of the request, like all that follows. */
  knownAt(asked: Asked, index: number): Known | undefined {
    const active = this.activeAt(asked.rule, index);
    if (active === undefined) return undefined;
    const byMeter = this.#byMeter(active.state.rule.id, asked.userId, index);
    const [known] = byMeter.filter(({ keys }) => keys === active);
    const retired = byMeter.filter(({ keys }) => keys !== active);
    const state = valueAt(active.states, index);
    if (known === undefined || state === undefined) return undefined;
    const reachMillis = reachMillisOf(state.rule, state.groupWindowMillis);
    const others = this.#windowsBeside(known.rule).map((id) => this.#byMeter(id, asked.userId, index));
    const { nearEpochMillis } = this;
    return { ...known, retired, reachMillis, others, nearEpochMillis, steps: this.stepsAt(index) };
  }

  /** The memory of a key in each meter that this rule ever had. */
  #byMeter(ruleId: string, userId: string, index: number) {
    const record = this.records.at(userId, index);
    return (this.rules.get(ruleId) ?? []).flatMap((keys) => {
      const state = valueAt(keys.states, index);
      const key = keys.keys.get(userId);
      const runs = valueAt(key?.runs ?? [], index);
      const madeMillis = valueAt(key?.made ?? [], index);
      if (state === undefined) return [];
      return [{ ...state, rule: ruleOfKey(state.rule, record), keys, runs, madeMillis }];
    });
  }

  /** The ids of all other windows that its rule ever had. */
  #windowsBeside({ id, of = id }: Rule): readonly string[] {
    const beside = [...this.rules].filter(([other, [keys]]) => {
      const { rule } = keys?.state ?? {};
      return other !== id && (rule?.of ?? other) === of;
    });
    return beside.map(([other]) => other).toSorted();
  }

  isKnownAt(index: number, asked: Asked): boolean {
    const keys = this.activeAt(asked.rule, index);
    return valueAt(keys?.keys.get(asked.userId)?.runs ?? [], index) !== undefined;
  }

  /** How long until no grant of this user counts under the rule, at that group time, without other windows. */
  emptyMillisAt(index: number, asked: Asked, timeMillis: number): number {
    const known = this.knownAt(asked, index);
    if (known === undefined) return 0;
    const waits = [known, ...known.retired].map(({ rule, groupWindowMillis: windowMillis, runs = [] }) =>
      waitUntil(rule, runs, atTime(timeMillis + axisOf(rule, known.steps), windowMillis, known.steps), 0),
    );
    const { inherited } = judge(known, { ...asked, timestampMillis: undefined }, timeMillis);
    return Math.max(...waits, inherited?.emptyMillis ?? 0);
  }

  /** The grants of this rule were only ever kept in a log of every millisecond. */
  isPlainLog(ruleId: string): boolean {
    return (this.rules.get(ruleId) ?? []).every(({ state }) => meterKindOf(state.rule) === 'slidingLog');
  }

  /** Grants of other windows may count in this one: inherited ones are out after another window. */
  isNewAt(index: number, asked: Asked, timeMillis: number): boolean {
    const known = this.knownAt(asked, index);
    if (known === undefined || known.others.length === 0) return false;
    return timeMillis < known.sinceMillis + 2 * known.groupWindowMillis;
  }

  /** The status of a user under a rule, as a peek for this cost reports it; undefined if there is no such rule. */
  statusAt(
    at: { readonly index: number; readonly term: number; readonly timeMillis: number },
    { userId, rule, cost, timestampMillis }: Pick<Asked, 'userId' | 'rule' | 'cost' | 'timestampMillis'>,
  ): Decision | undefined {
    const { index, term, timeMillis } = at;
    const asked = { userId, rule, cost, timestampMillis, requestId: undefined };
    const known = this.knownAt(asked, index);
    if (known === undefined || timeMillis < this.timeAt(index)) return undefined;
    const place = { index, term, position: undefined, rulesVersion: this.tableAt(index)?.version ?? 0 };
    return denialOf(known, judge(known, asked, timeMillis), cost, place);
  }
}
