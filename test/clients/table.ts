/** Formats the results of all clients as a table, with the failures below each line. */
import type { Findings } from './run.ts';

/** Formats the table. `hasFailed` is true if a check or a client failed; skipped clients do not count. */
export function tableOf(all: readonly Findings[]): {
  readonly lines: readonly string[];
  readonly hasFailed: boolean;
} {
  const lines = all.flatMap(linesOf);
  const hasFailed = all.some(
    ({ skipped, checks }) =>
      skipped === undefined && (checks.size === 0 || [...checks.values()].some(isWrong)),
  );
  return { lines: [row('client', 'version', 'checks'), ...lines], hasFailed };
}

function linesOf({ name, version, skipped, checks }: Findings): string[] {
  if (skipped !== undefined) return [row(name, '', `skipped: ${skipped}`)];
  const right = [...checks].filter(([, word]) => !isWrong(word)).map(([check]) => check);
  const wrong = [...checks].filter(([, word]) => isWrong(word));
  return [
    row(name, version, `${right.length} of ${checks.size} right: ${right.join(', ')}`),
    ...wrong.map(([check, word]) => row('', '', `WRONG ${check}: ${word}`)),
  ];
}

function isWrong(word: string): boolean {
  return word !== 'ok';
}

function row(name: string, version: string, words: string): string {
  return `${name.padEnd(15)} ${version.padEnd(22)} ${words}`;
}
