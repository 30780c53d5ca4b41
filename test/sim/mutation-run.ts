/** Runs every mutant and tells which seed caught it; a survivor is a hole in the simulator. */
import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { MUTANTS } from './mutants.ts';

const run = promisify(execFile);
const CHILD = fileURLToPath(new URL('mutant-child.js', import.meta.url));

/**
 * Prints one line per mutant. Returns the ids of those that survived `seedsMax` seeds, or a crash at every boundary of
 * the short scripts, which cannot show them all.
 */
export async function runMutants(
  first: number | 'crash-points',
  seedsMax: number,
  print: (line: string) => void,
): Promise<string[]> {
  const survivors: string[] = [];
  const unit = first === 'crash-points' ? 'runs' : 'seeds';
  for (const { id, bug } of MUTANTS) {
    const { stdout } = await run(process.execPath, [CHILD, id, String(first), String(seedsMax)]);
    const found = JSON.parse(stdout) as { runs: number; violation?: string };
    if (found.violation === undefined) survivors.push(id);
    const fate =
      found.violation === undefined
        ? `SURVIVED ${found.runs} ${unit}`
        : `caught after ${found.runs} ${unit} (${found.violation.slice(0, 110)})`;
    print(`${id.padEnd(5)} ${bug}: ${fate}`);
  }
  return survivors;
}
