/** The state of the naive limiter: what was so from which entry on, how large all of it is, and one number for it. */
import type { RuleTable } from '../../src/limiter/rules.ts';
import type { StateItem } from '../../src/limiter/state/inspection.ts';
import type { Run } from './naive-meters.ts';
import { digestOfItem } from './state-digest.ts';

/** What was so from entry `index` on. */
export interface Since<T> {
  readonly index: number;
  readonly value: T;
}

export function valueAt<T>(versions: readonly Since<T>[], index: number): T | undefined {
  for (let i = versions.length - 1; i >= 0; i -= 1) {
    const version = versions[i];
    if (version !== undefined && version.index <= index) return version.value;
  }
  return undefined;
}

export interface Key {
  readonly userId: string;
  madeMillis: number;
  /** The same as of any entry. */
  readonly made: Since<number>[];
  /** The entry since which it is known; of a bucket, since which it has its limit. */
  sinceIndex: number;
  /** Undefined when it was forgotten. */
  readonly runs: Since<readonly Run[] | undefined>[];
}

export type RuleState = Omit<Extract<StateItem, { kind: 'rule' }>, 'kind'>;

export interface KeysOfRule {
  state: RuleState;
  /** Undefined when it was forgotten. */
  readonly states: Since<RuleState | undefined>[];
  readonly keys: Map<string, Key>;
  /** Sweeps go in this order; the last one takes the place of one that is forgotten. */
  readonly order: Key[];
}

export class Tally {
  bytes = 0;
  /** Of all items but the first, whose fields change all the time. */
  #digest = 0;

  count(item: StateItem, sign: 1 | -1): void {
    this.#digest = (this.#digest + sign * digestOfItem(item)) >>> 0;
  }

  /** Of all that was counted, and of `first`. */
  digestWith(first: StateItem): number {
    return (this.#digest + digestOfItem(first)) >>> 0;
  }
}

/** The id of the rule that is meant. */
export function resolved(rule: string, table: RuleTable | undefined): string {
  return rule === '' ? (table?.rules[0]?.id ?? '') : rule;
}

export function keyItem({ state }: KeysOfRule, { userId, madeMillis }: Key, runs: readonly Run[]): StateItem {
  return { kind: 'key', ruleId: state.rule.id, userId, madeMillis, runs };
}
