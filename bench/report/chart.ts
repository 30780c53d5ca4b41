/** Draws charts as SVG text: bars with the range of the rounds, and latencies on a logarithmic scale. */
import type { Spread } from '../statistics.ts';
import { number } from './table.ts';

const LABEL_WIDTH = 220;
const PLOT_WIDTH = 480;
const VALUE_WIDTH = 140;
const ROW_HEIGHT = 26;
const AXIS_HEIGHT = 20;
const BAR_HEIGHT = 14;
const WIDTH = LABEL_WIDTH + PLOT_WIDTH + VALUE_WIDTH;

export interface Bar {
  readonly label: string;
  readonly value: Spread;
  /** Quorate's own bar, drawn in its own colour. */
  readonly isOurs: boolean;
}

export interface LatencyRow {
  readonly label: string;
  readonly p50Millis: number;
  readonly p99Millis: number;
  readonly p999Millis: number;
  readonly isOurs: boolean;
}

/** Escapes a text for HTML and SVG. */
export function escaped(text: string): string {
  return text
    .replaceAll('&', '&amp;')
    .replaceAll('<', '&lt;')
    .replaceAll('>', '&gt;')
    .replaceAll('"', '&quot;');
}

function svg(title: string, rows: number, content: string): string {
  const height = rows * ROW_HEIGHT + AXIS_HEIGHT;
  return `<svg viewBox="0 0 ${WIDTH} ${height}" role="img" aria-label="${escaped(title)}">${content}</svg>`;
}

function label(text: string, y: number): string {
  return `<text class="label" x="${LABEL_WIDTH - 8}" y="${y + 4}">${escaped(text)}</text>`;
}

function at(x: number): string {
  return (LABEL_WIDTH + x).toFixed(1);
}

/** Draws bars from zero, so that their lengths can be compared. */
export function barChart(title: string, bars: readonly Bar[]): string {
  const largest = Math.max(...bars.map(({ value }) => value.max), Number.MIN_VALUE);
  const scale = (value: number): number => (value / largest) * PLOT_WIDTH;
  const rows = bars.map(({ label: text, value, isOurs }, i) => {
    const middle = i * ROW_HEIGHT + ROW_HEIGHT / 2;
    const bar = `<rect class="${isOurs ? 'ours' : 'other'}" x="${at(0)}" y="${middle - BAR_HEIGHT / 2}" \
width="${scale(value.median).toFixed(1)}" height="${BAR_HEIGHT}"/>`;
    const range = `<path class="range" d="M${at(scale(value.min))} ${middle}H${at(scale(value.max))}"/>`;
    const figure = `<text class="value" x="${at(scale(value.max) + 6)}" y="${middle + 4}">${number(value.median)}</text>`;
    return label(text, middle) + bar + range + figure;
  });
  return svg(title, bars.length, rows.join(''));
}

/** The range of the axis in whole powers of ten. */
function decadesOf(rows: readonly LatencyRow[]): { readonly low: number; readonly high: number } {
  const values = rows.flatMap(({ p50Millis, p999Millis }) => [p50Millis, p999Millis]);
  const low = Math.floor(Math.log10(Math.max(0.001, Math.min(...values))));
  const high = Math.ceil(Math.log10(Math.max(...values)));
  return { low, high: Math.max(high, low + 1) };
}

/** Draws p50, p99 and p99.9 of each row. */
export function latencyChart(title: string, rows: readonly LatencyRow[]): string {
  const { low, high } = decadesOf(rows);
  const scale = (millis: number): number =>
    ((Math.log10(Math.max(millis, 10 ** low)) - low) / (high - low)) * PLOT_WIDTH;
  const bottom = rows.length * ROW_HEIGHT;
  const axis = Array.from({ length: high - low + 1 }, (_, i) => {
    const x = at((i / (high - low)) * PLOT_WIDTH);
    const line = `<path class="grid" d="M${x} 0V${bottom}"/>`;
    return `${line}<text class="tick" x="${x}" y="${bottom + 15}">${10 ** (low + i)} ms</text>`;
  });
  const points = rows.map((row, i) => {
    const { p50Millis, p99Millis, p999Millis, isOurs } = row;
    const middle = i * ROW_HEIGHT + ROW_HEIGHT / 2;
    const kind = isOurs ? 'ours' : 'other';
    const span = `<path class="range" d="M${at(scale(p50Millis))} ${middle}H${at(scale(p999Millis))}"/>`;
    const dots = [p50Millis, p99Millis, p999Millis].map(
      (millis, size) => `<circle class="${kind}" cx="${at(scale(millis))}" cy="${middle}" r="${6 - size}"/>`,
    );
    const figures = [p50Millis, p99Millis, p999Millis].map(number).join(' / ');
    const text = `<text class="value" x="${at(PLOT_WIDTH + 8)}" y="${middle + 4}">${figures}</text>`;
    return label(row.label, middle) + span + dots.join('') + text;
  });
  return svg(title, rows.length, axis.join('') + points.join(''));
}
