/**
 * Runs one mutant in a process of its own until a seed, or a crash at some boundary, catches it. It reads a `Task`
 * as JSON and prints a `Fate`.
 */
import { readFileSync } from 'node:fs';
import { loadHash32 } from '../../../src/partition/hash.ts';
import { mutantOf, themeOf } from './all.ts';
import type { Fate, Task } from './run.ts';

function end(fate: Fate): never {
  const { user, system } = process.cpuUsage();
  process.stdout.write(JSON.stringify({ ...fate, cpuSeconds: (user + system) / 1e6 }));
  process.exit(0);
}

const { id, seeds, script } = JSON.parse(readFileSync(0, 'utf8')) as Task;
const { seams } = mutantOf(id);
const theme = themeOf(id);
if (script !== undefined) {
  const { firstCrash } = await import('../crash-points/command.ts');
  const { violation, runs } = await firstCrash(seams, script === '' ? undefined : script);
  end({ caughtBy: violation, runs });
}
const { runSeed } = await import('../run.ts');
const hash = await loadHash32();
let runs = 0;
for (const seed of seeds) {
  runs += 1;
  const { violation } = await runSeed({ seed, hash, theme, seams });
  if (violation !== undefined) end({ caughtBy: violation.split('\n')[0], seed, runs });
}
end({ runs });
