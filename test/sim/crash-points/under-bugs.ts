/** Enumerations that should find a bug: a mutant, or a node in a changed environment. Judges nothing. */
import { loadHash32 } from '../../../src/partition/hash.ts';
import { mutantOf } from '../mutants/all.ts';
import type { Seams } from '../node-world.ts';
import { scriptNamed } from './all.ts';
import { type Enumeration, enumerateCrashes } from './enumerate.ts';

/** A bug ends an enumeration early, so it may try more crashes than a run that finds nothing. */
const SAMPLES_PER_BUG = 4;

export async function underMutant(id: string, name: string): Promise<Enumeration> {
  const { seams } = mutantOf(id);
  if (seams === undefined) throw new RangeError(`mutant ${id} is none of a node's surroundings`);
  return underSeams(seams, name);
}

export async function underSeams(seams: Seams, name: string): Promise<Enumeration> {
  const script = scriptNamed(name);
  const hash = await loadHash32();
  return enumerateCrashes({ script, hash, seams, sample: SAMPLES_PER_BUG * script.sample });
}
