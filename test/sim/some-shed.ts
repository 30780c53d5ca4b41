/** A node that now and then has too much to do for what others forward to it. No time passes in a simulated round of its event loop. */
import type { SheddingOfForwarded } from '../../src/api/shedding.ts';

/** So often a node has no room for what another one forwards: it says so before anything of it reaches a log. */
const SHED_EACH = 7;

export function someShed(): SheddingOfForwarded {
  let forwarded = 0;
  return {
    maybeRefuseForwarded() {
      forwarded += 1;
      return forwarded % SHED_EACH === 0;
    },
    leftForwarded: () => undefined,
  };
}
