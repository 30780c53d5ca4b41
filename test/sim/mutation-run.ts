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
  for (const { id, bug, script } of MUTANTS) {
    const { isCaught, fate } = await fateOf(id, script === undefined ? first : 'crash-points', seedsMax);
    if (!isCaught) survivors.push(id);
    print(`${id.padEnd(5)} ${bug}: ${fate}`);
  }
  return survivors;
}

/** A mutant whose place in the code is gone was not caught either. */
async function fateOf(
  id: string,
  first: number | 'crash-points',
  seedsMax: number,
): Promise<{ readonly isCaught: boolean; readonly fate: string }> {
  const unit = first === 'crash-points' ? 'runs' : 'seeds';
  try {
    const { stdout } = await run(process.execPath, [CHILD, id, String(first), String(seedsMax)]);
    const { runs, violation } = JSON.parse(stdout) as { runs: number; violation?: string };
    if (violation === undefined) return { isCaught: false, fate: `SURVIVED ${runs} ${unit}` };
    return { isCaught: true, fate: `caught after ${runs} ${unit} (${violation.slice(0, 110)})` };
  } catch (error) {
    const reason = /^Error: .*$/m.exec(String((error as { stderr?: unknown }).stderr ?? error))?.[0];
    return { isCaught: false, fate: `DID NOT RUN (${reason ?? String(error)})` };
  }
}
