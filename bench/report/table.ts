/**
 * Formats one table for each comparison, for the terminal. The page (`page.ts`) shows the same columns.
 */
import type { Comparison, CellSummary } from '../summary.ts';
import type { Spread } from '../statistics.ts';

export interface Column {
  readonly title: string;
  readonly text: (row: CellSummary) => string;
}

const NOTHING = '-';

/** Formats a number with three digits: a bench is not more exact. */
export function number(value: number): string {
  if (value >= 100) return Math.round(value).toLocaleString('en');
  return value >= 10 ? value.toFixed(1) : value.toFixed(2);
}

function middle(spread: Spread | undefined, unit = 1): string {
  return spread === undefined ? NOTHING : number(spread.median / unit);
}

function withRange(spread: Spread | undefined): string {
  if (spread === undefined) return NOTHING;
  const { median, min, max } = spread;
  return min === max ? number(median) : `${number(median)} (${number(min)}..${number(max)})`;
}

const MEGABYTE = 2 ** 20;

export const COLUMNS: readonly Column[] = [
  { title: 'under load', text: ({ thingName }) => thingName },
  {
    title: 'disks',
    text: ({ promise }) => (promise.failoverLoses === '-' ? NOTHING : String(promise.disks)),
  },
  { title: 'failover loses', text: ({ promise }) => promise.failoverLoses },
  { title: 'decisions/s', text: ({ decisionsPerSecond }) => withRange(decisionsPerSecond) },
  { title: 'x bare', text: ({ timesBare }) => withRange(timesBare) },
  { title: 'Quorate x', text: ({ quorateTimes }) => withRange(quorateTimes) },
  { title: 'p50 ms', text: ({ p50Millis }) => middle(p50Millis) },
  { title: 'p99 ms', text: ({ p99Millis }) => middle(p99Millis) },
  { title: 'p99.9 ms', text: ({ p999Millis }) => middle(p999Millis) },
  { title: 'max ms', text: ({ maxMillis }) => middle(maxMillis) },
  { title: 'CPU s/M', text: ({ cpuSecondsPerMillion }) => middle(cpuSecondsPerMillion) },
  { title: 'load CPU s/M', text: ({ loadCpuSecondsPerMillion }) => middle(loadCpuSecondsPerMillion) },
  { title: 'syncs/s', text: ({ syncsPerSecond }) => middle(syncsPerSecond) },
  { title: 'entries/s', text: ({ entriesPerSecond }) => middle(entriesPerSecond) },
  { title: 'MiB', text: ({ residentBytes }) => middle(residentBytes, MEGABYTE) },
  {
    title: 'unexpected',
    text: ({ unexpectedFraction }) =>
      unexpectedFraction === 0 ? NOTHING : `${(unexpectedFraction * 100).toFixed(2)} %`,
  },
];

/** Aligns the first column left and all others right. */
function aligned(cells: readonly string[], widths: readonly number[]): string {
  return cells
    .map((cell, i) => (i === 0 ? cell.padEnd(widths[i] ?? 0) : cell.padStart(widths[i] ?? 0)))
    .join('  ');
}

export function comparisonTable({ title, rows }: Comparison): string {
  const head = COLUMNS.map((column) => column.title);
  const body = rows.map((row) => COLUMNS.map((column) => column.text(row)));
  const widths = head.map((text, i) => Math.max(text.length, ...body.map((cells) => cells[i]?.length ?? 0)));
  return [title, ...[head, ...body].map((cells) => `  ${aligned(cells, widths)}`)].join('\n');
}
