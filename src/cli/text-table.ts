/** Formats tables, byte counts and lists of ids for the terminal. */

/**
 * Returns the rows as lines with aligned columns.
 *
 * @param rows of equal length; the first is the header
 */
export function textTable(rows: readonly (readonly string[])[]): string[] {
  const widths = (rows[0] ?? []).map((_, column) => Math.max(...rows.map((row) => row[column]?.length ?? 0)));
  return rows.map((row) =>
    row
      .map((cell, column) => cell.padEnd(widths[column] ?? 0))
      .join('  ')
      .trimEnd(),
  );
}

const UNITS = ['B', 'KiB', 'MiB', 'GiB', 'TiB'] as const;

/** A number of bytes with a unit, in about three digits. */
export function bytesText(bytes: number): string {
  let value = bytes;
  let unit = 0;
  while (value >= 1_024 && unit < UNITS.length - 1) {
    value /= 1_024;
    unit += 1;
  }
  return `${value >= 100 || unit === 0 ? Math.round(value) : value.toFixed(1)} ${UNITS[unit] ?? ''}`;
}

const LISTED_MAX = 10;

/** The ids separated by commas, with the rest as a number if there are many. */
export function listed(ids: readonly number[]): string {
  const more = ids.length > LISTED_MAX ? ` and ${ids.length - LISTED_MAX} others` : '';
  return `${ids.slice(0, LISTED_MAX).join(', ')}${more}`;
}
