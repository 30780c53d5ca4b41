/** The only source of randomness of the load: everything is drawn from one seed. */
import { xoroshiro128plus } from 'pure-rand/generator/xoroshiro128plus';

const WORD = 2 ** 32;

/** Random numbers in [0, 1), the same for the same seed (a 32-bit integer). */
export function seededUnit(seed: number): () => number {
  const generator = xoroshiro128plus(seed);
  // Small seeds differ in few bits, so the first outputs are similar and are dropped.
  for (let i = 0; i < 8; i += 1) generator.next();
  return () => (generator.next() >>> 0) / WORD;
}
