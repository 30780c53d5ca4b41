/** Formats numbers, durations and events as text. Pure. */
import type { Fault } from '../api/monitoring.ts';

/** Such as `1 node` or `3 nodes`. */
export function counted(count: number, one: string, many = `${one}s`): string {
  return `${wholeNumber(count)} ${count === 1 ? one : many}`;
}

/** Rounded, with thousands separators. */
export function wholeNumber(value: number): string {
  return Math.round(value).toLocaleString('en');
}

/** Shortened to three digits from a hundred thousand on, such as `1.23M`, for narrow columns. */
export function shortNumber(value: number): string {
  if (value < SHORT_MIN) return wholeNumber(value);
  return value.toLocaleString('en', { notation: 'compact', maximumSignificantDigits: 3 });
}

const SHORT_MIN = 100_000;

/** A rate, with one decimal if it is below 10. */
export function rate(value: number | null | undefined): string {
  if (value === null || value === undefined) return '–';
  return value > 0 && value < 10 ? value.toFixed(1) : wholeNumber(value);
}

/** Milliseconds, with one decimal if they are below 10. */
export function millis(value: number | null | undefined): string {
  if (value === null || value === undefined) return '–';
  return `${value < 10 ? value.toFixed(1) : wholeNumber(value)} ms`;
}

/** Such as `1, 2 and 3`. A long list is cut: `1, 2 and 7 more`. */
export function listed(items: readonly number[]): string {
  const named = items.slice(0, LISTED_MAX).map(String);
  const rest = items.length - named.length;
  const all = rest > 0 ? [...named, `${rest} more`] : named;
  return all.length < 2 ? all.join('') : `${all.slice(0, -1).join(', ')} and ${all.at(-1) ?? ''}`;
}

const LISTED_MAX = 8;

/** Such as `node 2`, or `nodes 2 and 3`. */
export function nodesInWords(nodes: readonly number[]): string {
  return `${nodes.length === 1 ? 'node' : 'nodes'} ${listed(nodes)}`;
}

/** Capitalises the first letter. */
export function startOf(sentence: string): string {
  return `${sentence.charAt(0).toUpperCase()}${sentence.slice(1)}`;
}

/** A fraction as a percentage. It shows 0 % and 100 % only for exactly 0 and 1. */
export function percent(fraction: number): string {
  const hundredths = 100 * fraction;
  if (fraction > 0 && hundredths < 0.1) return 'under 0.1 %';
  if (fraction < 1 && hundredths > 99.9) return 'over 99.9 %';
  const isSmall = hundredths > 0 && hundredths < 10;
  const rounded = isSmall ? hundredths.toFixed(1) : String(Math.round(hundredths));
  return `${fraction < 1 && rounded === '100' ? '99.9' : rounded.replace(/\.0$/, '')} %`;
}

/** The speed difference of a clock: 1 ppm is one microsecond in each second. */
export function partsPerMillion(ppm: number | null): string {
  if (ppm === null) return 'not compared yet';
  const rounded = Math.round(ppm);
  return rounded === 0 ? 'in step' : `${rounded > 0 ? '+' : '−'}${wholeNumber(Math.abs(rounded))} ppm`;
}

const UNITS = [
  ['d', 86_400_000],
  ['h', 3_600_000],
  ['min', 60_000],
  ['s', 1_000],
] as const;

/** A duration in its two largest units, such as `1 min 30 s`. */
export function span(spanMillis: number): string {
  if (spanMillis < 1_000) return `${Math.ceil(spanMillis)} ms`;
  const parts: string[] = [];
  let rest = Math.ceil(spanMillis / 1_000) * 1_000;
  for (const [unit, length] of UNITS) {
    const count = Math.floor(rest / length);
    rest -= count * length;
    if (count > 0) parts.push(`${count} ${unit}`);
  }
  return parts.slice(0, 2).join(' ');
}

/** Bytes, KiB or MiB. */
export function bytes(value: number): string {
  if (value < 1_024) return `${value} B`;
  if (value < 1_048_576) return `${(value / 1_024).toFixed(1)} KiB`;
  return value < 10_485_760
    ? `${(value / 1_048_576).toFixed(1)} MiB`
    : `${wholeNumber(value / 1_048_576)} MiB`;
}

/** Time of day, by the clock of the browser. */
export function clockTime(atMillis: number): string {
  return new Date(atMillis).toLocaleTimeString('en-GB');
}

/** How bad an event is. */
export type Gravity = 'bad' | 'warning' | 'good' | 'usual';

/** How bad an event of this kind is. */
export function gravityOf({ kind }: Fault): Gravity {
  switch (kind) {
    case 'nodeSilent':
    case 'leaderLost':
      return 'bad';
    case 'clockUnfit':
    case 'drainBegun':
      return 'warning';
    case 'nodeHeard':
    case 'leaderElected':
    case 'clockFit':
    case 'drainEnded':
      return 'good';
    case 'leaderMoved':
      return 'usual';
  }
}

/** Describes an event in one sentence, without a capital. */
export function faultInWords({ kind, node, count = 0, partitions = [] }: Fault): string {
  const more = count > partitions.length ? ` and ${count - partitions.length} more` : '';
  const which = `${counted(count, 'partition')} (${partitions.join(', ')}${more})`;
  switch (kind) {
    case 'nodeSilent':
      return `node ${node} went silent`;
    case 'nodeHeard':
      return `node ${node} is back`;
    case 'leaderLost':
      return `${which} lost the leader, node ${node}`;
    case 'leaderElected':
      return `node ${node} leads ${which} now`;
    case 'leaderMoved':
      return `node ${node} took over ${which}, as planned`;
    case 'clockUnfit':
      return `the clock of node ${node} runs too fast or too slow: it leads nothing`;
    case 'clockFit':
      return `the clock of node ${node} runs as fast as the others again`;
    case 'drainBegun':
      return `an operator drains node ${node}: it hands over what it leads, and takes no requests`;
    case 'drainEnded':
      return `node ${node} takes requests again: its drain ended`;
  }
}
