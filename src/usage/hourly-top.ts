/**
 * Finds the keys that are granted and denied most, per rule, in the current hour and the one before. A sketch
 * cannot forget, so each hour has sketches of its own.
 */
import type { TopKey } from '../api/usage.ts';
import { SpaceSaving } from './space-saving.ts';
import { sumOf, type TopList } from './top-keys.ts';

/** Keys per list and hour. The error of a count is at most a thousandth of the answers of that hour. */
export const TOP_COUNTERS = 1_000;
const HOUR_MINUTES = 60;
const LISTS = ['allowed', 'denied'] as const;
type List = (typeof LISTS)[number];
type Sketches = Readonly<Record<List, SpaceSaving>>;

/** The most frequent keys of one node. */
export class HourlyTop {
  readonly #counters: number;
  #hour = -1;
  #current: Sketches;
  #previous: Sketches | undefined;

  /** @param counters number of keys that a list of one hour holds */
  constructor(counters: number = TOP_COUNTERS) {
    this.#counters = counters;
    this.#current = this.#empty();
  }

  /**
   * Sets the current minute, counted since 1970. The previous hour is kept only if it directly precedes; after a
   * gap or a clock step both hours start empty.
   */
  turnTo(minute: number): void {
    const hour = Math.floor(minute / HOUR_MINUTES);
    if (hour === this.#hour) return;
    this.#previous = hour === this.#hour + 1 ? this.#current : undefined;
    this.#current = this.#empty();
    this.#hour = hour;
  }

  /** The first minute that the lists cover. */
  get fromMinute(): number {
    return Math.max(0, this.#hour - 1) * HOUR_MINUTES;
  }

  /** Counts an answer for a key. @param row small number of the rule */
  add(list: List, row: number, key: string): void {
    this.#current[list].add(row, key);
  }

  /** The most frequent keys of both hours. @param ruleOf the rule of a row; undefined: the row is left out */
  list(list: List, ruleOf: (row: number) => string | undefined): TopList {
    return sumOf(
      [this.#current, ...(this.#previous === undefined ? [] : [this.#previous])].map((sketches) =>
        listOf(sketches[list], ruleOf),
      ),
    );
  }

  #empty(): Sketches {
    return { allowed: new SpaceSaving(this.#counters), denied: new SpaceSaving(this.#counters) };
  }
}

function listOf(sketch: SpaceSaving, ruleOf: (row: number) => string | undefined): TopList {
  const keys: TopKey[] = [];
  for (const { group, key, count, error } of sketch.kept()) {
    const rule = ruleOf(group);
    if (rule !== undefined) keys.push({ rule, key, count, error });
  }
  return { keys, othersMax: sketch.least };
}
