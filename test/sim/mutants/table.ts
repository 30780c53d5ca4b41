/** The table of test/sim/MUTANTS.md: what caught each mutant, and the seed to try first. */
import type { Kind } from '../kinds.ts';
import type { Mutant } from './mutant.ts';
import type { Fate } from './run.ts';

const CAUGHT_BY_MAX = 100;

export interface Row {
  readonly id: string;
  readonly bug: string;
  readonly caughtBy: string;
  readonly seed: number | undefined;
}

/** @param kind of the worlds that were searched for it */
export function rowOf({ id, bug }: Mutant, kind: Kind | undefined, fate: Fate): Row {
  const { caughtBy, failure, runs, seed } = fate;
  const survived = failure === undefined ? `SURVIVED ${runs}` : `DID NOT RUN: ${failure}`;
  const where = seed === undefined || kind === 'usual' ? '' : `${kind}: `;
  const words = `${where}${caughtBy ?? survived}`.replaceAll('|', '/').replaceAll('\n', ' ');
  const isLong = words.length > CAUGHT_BY_MAX;
  return { id, bug, caughtBy: isLong ? `${words.slice(0, CAUGHT_BY_MAX)}…` : words, seed };
}

const HEAD = `# Mutants

Known bugs, and what catches each of them. \`npm run mutants -- --write\` writes this file.

A seed catches the mutant on the commit on which it was found; on any other commit it is only the first seed to try. Its
world is of the kind that "caught by" names, or else a usual one. A mutant without a seed is caught by a script of crash
points, or by a unit test if no world of the simulator can show it (its entry in \`test/sim/mutants\` says why).
"SURVIVED n" means that none of the first n seeds caught it, and no more were tried.
`;

const EFFORT_HEAD = `
## What it takes to find one

\`npm run mutants -- --fresh\` tries each mutant on at most 200 new seeds of its own. The figures are processor seconds
until a mutant is caught, including the half second in which its process starts.

| worlds | mutants | median s | 90th percentile s | not caught |
| --- | --- | --- | --- | --- |
| every feature in every world (a third of the mutants, at most 240 s each) | 96 | 6.6 | 65.7 | D8, T6, T17, K2, A7, G14 |
| every feature in every world (53 mutants, at most 30 s each) | 53 | 14.8 | > 30 | 15 of them |
| the same 53 mutants and seeds, with most features left out of each world | 53 | 4.5 | > 30 | 9 of them |
| the same, with V8 set up for short runs (\`SHORT_RUN\` in run.ts) | 53 | 2.9 | > 30 | 8 of them |
`;
const EFFORT_NAME = 'all mutants, with most features left out of each world';

/** The line that a run with fresh seeds adds to the table of what it takes to find a mutant. */
export function effortOf(fates: ReadonlyMap<string, Fate>): string {
  const seconds = [...fates.values()]
    .map((fate) => (fate.caughtBy === undefined ? Infinity : (fate.cpuSeconds ?? 0)))
    .toSorted((a, b) => a - b);
  const at = (part: number): string => (seconds[Math.floor(part * seconds.length)] ?? NaN).toFixed(1);
  const rest = [...fates].filter(([, fate]) => fate.caughtBy === undefined).map(([id]) => id);
  const notCaught = rest.length === 0 ? 'none' : rest.join(', ');
  return `| ${EFFORT_NAME} | ${seconds.length} | ${at(0.5)} | ${at(0.9)} | ${notCaught} |`;
}

/** The line of `effortOf` in what `markdownOf` wrote. */
export function effortIn(markdown: string): string | undefined {
  return markdown.split('\n').find((line) => line.startsWith(`| ${EFFORT_NAME}`));
}

/**
 * @param areas the rows of each, in order
 * @param effort of the last run with fresh seeds
 */
export function markdownOf(areas: ReadonlyMap<string, readonly Row[]>, effort = ''): string {
  const parts = [...areas].map(([area, rows]) => {
    const lines = rows.map((row) => `| ${row.id} | ${row.bug} | ${row.caughtBy} | ${row.seed ?? ''} |`);
    return `## ${area}\n\n| mutant | bug | caught by | seed |\n| --- | --- | --- | --- |\n${lines.join('\n')}\n`;
  });
  return [HEAD + EFFORT_HEAD + (effort === '' ? '' : `${effort}\n`), ...parts].join('\n');
}

/** The rows in a text of `markdownOf`, also after a formatter has changed its layout. */
export function rowsOf(markdown: string): Map<string, Row> {
  const rows = new Map<string, Row>();
  for (const line of markdown.split('\n')) {
    const [, id, bug = '', caughtBy = '', seed = ''] = line.split('|').map((cell) => cell.trim());
    if (id === undefined || !/^[A-Z]\w*$/.test(id)) continue;
    rows.set(id, { id, bug, caughtBy, seed: seed === '' ? undefined : Number(seed) });
  }
  return rows;
}
