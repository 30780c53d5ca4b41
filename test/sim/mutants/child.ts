/**
 * Runs one mutant in a process of its own until a seed catches it, or a crash at some boundary. Its argument is a
 * `Task` as JSON; it prints a `Fate`.
 */
import { register } from 'node:module';
import { mutantOf } from './all.ts';
import { compiled, Sources } from './places.ts';
import type { Fate, Task } from './run.ts';

function end(fate: Fate): never {
  process.stdout.write(JSON.stringify(fate));
  process.exit(0);
}

const { id, seeds, script } = JSON.parse(process.argv[2] ?? '{}') as Task;
const { edits = [], seams } = mutantOf(id);
// Before anything of the product is loaded.
register('./hooks.js', import.meta.url, { data: await compiled(Sources.read().edited(edits)) });
const { loadHash32 } = await import('../../../src/partition/hash.ts');
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
  const { violation } = await runSeed({ seed, hash, seams });
  if (violation !== undefined) end({ caughtBy: violation.split('\n')[0], seed, runs });
}
end({ runs });
