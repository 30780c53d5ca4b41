/** Prints the table of results from the folders of runs: `node dist/test/jepsen/table.js FOLDER...`. */
import { readFileSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { readRun } from './run-folder.ts';
import { type Summary, summaryOf, TABLE_HEAD, tableRow } from './summary.ts';
import type { Verdict } from './verdict.ts';

/** Reads the summary that a run wrote when it ended, or computes it now with the given command. */
async function summaryIn(folder: string): Promise<Summary> {
  try {
    return JSON.parse(readFileSync(join(folder, 'summary.json'), 'utf8')) as Summary;
  } catch {
    const run = await readRun(folder);
    const verdict = JSON.parse(readFileSync(join(folder, 'verdict.json'), 'utf8')) as Verdict;
    const command = readFileSync(join(folder, 'command.txt'), 'utf8').trim();
    const summary = summaryOf(command, run.history, run.bands, verdict);
    writeFileSync(join(folder, 'summary.json'), `${JSON.stringify(summary, undefined, 2)}\n`);
    return summary;
  }
}

for (const line of TABLE_HEAD) console.log(line);
for (const folder of process.argv.slice(2)) {
  const name = basename(folder).replace(/-\d+$/, '');
  console.log(tableRow(name, await summaryIn(folder)));
}
