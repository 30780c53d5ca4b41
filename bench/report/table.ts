/** Formats one table for each comparison, for the terminal. */
import type { Comparison } from '../summary.ts';
import { COLUMNS } from './columns.ts';

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
