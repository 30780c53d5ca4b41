/** The state of the naive limiter: each value with the entry from which it holds, the total size, and a digest. */
import type { RuleTable } from '../../src/limiter/rules.ts';
import type { StateItem } from '../../src/limiter/state/inspection.ts';
import type { Run } from './naive-meters.ts';
import { digestOfItem } from './state-digest.ts';

/** A value that holds from entry `index` on. */
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
  /** The same, per entry. */
  readonly made: Since<number>[];
  /** The entry since which the key is known; for a bucket, since which it has its limit. */
  sinceIndex: number;
  /** Undefined from when it was forgotten. */
  readonly runs: Since<readonly Run[] | undefined>[];
}

export type RuleState = Omit<Extract<StateItem, { kind: 'rule' }>, 'kind'>;

export interface KeysOfRule {
  state: RuleState;
  /** Undefined from when it was forgotten. */
  readonly states: Since<RuleState | undefined>[];
  readonly keys: Map<string, Key>;
  /** Sweeps go in this order. A forgotten key is replaced by the last one. */
  readonly order: Key[];
}

export class Tally {
  bytes = 0;
  /** The digest of all items but the first, whose fields change all the time. */
  #digest = 0;

  count(item: StateItem, sign: 1 | -1): void {
    this.#digest = (this.#digest + sign * digestOfItem(item)) >>> 0;
  }

  /** The digest of all counted items and of `first`. */
  digestWith(first: StateItem): number {
    return (this.#digest + digestOfItem(first)) >>> 0;
  }
}

/** The id of the rule that the request means. */
export function resolved(rule: string, table: RuleTable | undefined): string {
  return rule === '' ? (table?.rules[0]?.id ?? '') : rule;
}

export function keyItem({ state }: KeysOfRule, { userId, madeMillis }: Key, runs: readonly Run[]): StateItem {
  return { kind: 'key', ruleId: state.rule.id, userId, madeMillis, runs };
}
