/** The only source of chance in the load: everything is drawn from one seed. */
import { xoroshiro128plus } from 'pure-rand/generator/xoroshiro128plus';

const WORD = 2 ** 32;

/** Numbers in [0, 1), the same for the same seed (a whole number of 32 bits). */
export function seededUnit(seed: number): () => number {
  const generator = xoroshiro128plus(seed);
  // Small seeds differ in few bits; the first words show it.
  for (let i = 0; i < 8; i += 1) generator.next();
  return () => (generator.next() >>> 0) / WORD;
}
