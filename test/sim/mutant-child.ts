/**
 * Runs one mutant in a process of its own until a seed catches it, or a crash at some boundary. Arguments: its id, the
 * first seed, how many; or its id and `crash-points`.
 */
import { register } from 'node:module';
import { MUTANTS } from './mutants.ts';

const [id, first = '1', count = '100'] = process.argv.slice(2);
const mutant = MUTANTS.find((candidate) => candidate.id === id);
if (mutant === undefined) throw new Error(`there is no mutant ${id ?? ''}`);
// Before anything of the product is loaded.
if (mutant.edit !== undefined) {
  register('./mutant-hooks.js', import.meta.url, { data: [mutant.edit, ...(mutant.also ?? [])] });
}
const { loadHash32 } = await import('../../src/partition/hash.ts');
if (first === 'crash-points' || mutant.script !== undefined) {
  const { firstCrash } = await import('./crash-points/command.ts');
  process.stdout.write(JSON.stringify(await firstCrash(mutant.seams, mutant.script)));
  process.exit(0);
}
const { runSeed } = await import('./run.ts');
const hash = await loadHash32();
for (let i = 0; i < Number(count); i += 1) {
  const seed = Number(first) + i;
  const { violation } = await runSeed({ seed, hash, seams: mutant.seams });
  if (violation === undefined) continue;
  process.stdout.write(JSON.stringify({ runs: i + 1, seed, violation: violation.split('\n')[0] }));
  process.exit(0);
}
process.stdout.write(JSON.stringify({ runs: Number(count) }));
