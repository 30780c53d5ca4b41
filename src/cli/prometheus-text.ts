/** The text of `/metrics`, read for commands: series by name, and what lies between two readings of them. */

interface Series {
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly value: number;
}

const LINE = /^([a-zA-Z_:][\w:]*)(?:\{(.*)\})? (\S+)(?: \d+)?$/;
const LABEL = /([a-zA-Z_]\w*)="((?:[^"\\]|\\.)*)"/g;

export class Readings {
  readonly #byName = new Map<string, Series[]>();

  /** Lines in another form are passed over: a node of another version may tell more. */
  constructor(text: string) {
    for (const line of text.split('\n')) {
      const [, name, labelText = '', valueText] = LINE.exec(line) ?? [];
      const value = valueText === '+Inf' ? Infinity : Number(valueText);
      if (name === undefined || Number.isNaN(value)) continue;
      const labels = Object.fromEntries([...labelText.matchAll(LABEL)].map(([, key, text]) => [key, text]));
      const known = this.#byName.get(name);
      if (known === undefined) this.#byName.set(name, [{ name, labels, value }]);
      else known.push({ name, labels, value });
    }
  }

  series(name: string): readonly Series[] {
    return this.#byName.get(name) ?? [];
  }

  /** Of the first series; undefined if there is none. */
  value(name: string): number | undefined {
    return this.series(name)[0]?.value;
  }

  /** Of all series of a name, by a label; those without it together under ''. */
  sumBy(name: string, label: string): Map<string, number> {
    const sums = new Map<string, number>();
    for (const { labels, value } of this.series(name)) {
      const key = labels[label] ?? '';
      sums.set(key, (sums.get(key) ?? 0) + value);
    }
    return sums;
  }
}

/** How much each has grown. A counter that fell belongs to a node that was started again, and began at 0. */
export function growth(
  before: ReadonlyMap<string, number>,
  after: ReadonlyMap<string, number>,
): Map<string, number> {
  return new Map(
    [...after].map(([key, value]) => {
      const earlier = before.get(key) ?? 0;
      return [key, value >= earlier ? value - earlier : value];
    }),
  );
}

/**
 * The bound below which a share of what was observed lies, from how much each bucket has grown: the upper bound of the bucket, so
 * it is at most so long. Undefined if nothing was observed; Infinity above all bounds.
 *
 * @param buckets counts up to a bound, by the label `le`
 */
export function quantile(share: number, buckets: ReadonlyMap<string, number>): number | undefined {
  const sorted = [...buckets]
    .map(([le, count]) => [le === '+Inf' ? Infinity : Number(le), count] as const)
    .sort(([a], [b]) => a - b);
  const all = sorted.at(-1)?.[1] ?? 0;
  if (all === 0) return undefined;
  return sorted.find(([, count]) => count >= share * all)?.[0];
}
