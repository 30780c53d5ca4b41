/** Parses the text of `/metrics`, and computes differences and quantiles from two readings. */

interface Series {
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly value: number;
}

const LINE = /^([a-zA-Z_:][\w:]*)(?:\{(.*)\})? (\S+)(?: \d+)?$/;
const LABEL = /([a-zA-Z_]\w*)="((?:[^"\\]|\\.)*)"/g;

/** One reading of the metrics of a node. */
export class Readings {
  readonly #byName = new Map<string, Series[]>();

  /** Lines in an unknown form are skipped, because other versions may have more metrics. */
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

  /** The value of the first series with this name, or undefined. */
  value(name: string): number | undefined {
    return this.series(name)[0]?.value;
  }

  /** The sums of all series with this name, by the value of a label. Series without the label are under ''. */
  sumBy(name: string, label: string): Map<string, number> {
    const sums = new Map<string, number>();
    for (const { labels, value } of this.series(name)) {
      const key = labels[label] ?? '';
      sums.set(key, (sums.get(key) ?? 0) + value);
    }
    return sums;
  }
}

/**
 * How much each counter has grown. If a counter is lower than before, the node was restarted and its counter began at
 * 0.
 */
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
 * Returns the upper bound of the bucket that contains a quantile, so the true value is at most that. Undefined: there
 * were no observations. Infinity: it is above all bounds.
 *
 * @param fraction from 0 to 1: 0.99 is the 99th percentile
 * @param buckets growth of the cumulative counts, by the label `le`
 */
export function quantile(fraction: number, buckets: ReadonlyMap<string, number>): number | undefined {
  const sorted = [...buckets]
    .map(([le, count]) => [le === '+Inf' ? Infinity : Number(le), count] as const)
    .sort(([a], [b]) => a - b);
  const all = sorted.at(-1)?.[1] ?? 0;
  if (all === 0) return undefined;
  return sorted.find(([, count]) => count >= fraction * all)?.[0];
}
