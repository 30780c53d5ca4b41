/**
 * Which users are granted and denied most, per rule, in the hour under way and the one before. A sketch forgets nothing, so each hour has
 * its own. It reads no clock.
 */
import type { TopKey } from '../api/usage.ts';
import { SpaceSaving } from './space-saving.ts';
import { sumOf, type TopList } from './top-keys.ts';

/** So many keys per list and hour: errors are a thousandth of the answers of that hour at most. */
export const TOP_COUNTERS = 1_000;
const HOUR_MINUTES = 60;
const LISTS = ['allowed', 'denied'] as const;
type List = (typeof LISTS)[number];
type Sketches = Readonly<Record<List, SpaceSaving>>;

export class HourlyTop {
  readonly #counters: number;
  #hour = -1;
  #current: Sketches;
  #previous: Sketches | undefined;

  /** @param counters keys that a list of one hour holds */
  constructor(counters: number = TOP_COUNTERS) {
    this.#counters = counters;
    this.#current = this.#empty();
  }

  /** It is this minute now, since 1970. Only the next hour keeps this one: after a gap or a step of the clock both begin anew. */
  turnTo(minute: number): void {
    const hour = Math.floor(minute / HOUR_MINUTES);
    if (hour === this.#hour) return;
    this.#previous = hour === this.#hour + 1 ? this.#current : undefined;
    this.#current = this.#empty();
    this.#hour = hour;
  }

  /** The first minute of what is kept. */
  get fromMinute(): number {
    return Math.max(0, this.#hour - 1) * HOUR_MINUTES;
  }

  /** @param row a small number that stands for the rule */
  add(list: List, row: number, key: string): void {
    this.#current[list].add(row, key);
  }

  /** @param ruleOf the name of a row; undefined: rows that are left out */
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
