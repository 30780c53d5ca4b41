/**
 * Loaded into the node processes of a test: puts the bug named by `QUORATE_TEST_MUTANT` into the modules loaded after
 * it.
 */
import { register } from 'node:module';
import { compiled, Sources } from '../../sim/mutants/places.ts';
import { NODE_MUTANTS } from '../mutants.ts';

const id = process.env['QUORATE_TEST_MUTANT'];
const mutant = NODE_MUTANTS.find((candidate) => candidate.id === id);
if (mutant === undefined) throw new Error(`there is no mutant ${id ?? ''}`);
const data = await compiled(Sources.read().edited(mutant.edits));
register('./hooks.js', import.meta.url, { data });
