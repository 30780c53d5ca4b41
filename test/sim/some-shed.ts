/**
 * A node that is sometimes too busy for forwarded requests and sheds them. In a simulated round of its event loop no
 * time passes.
 */
import type { SheddingOfForwarded } from '../../src/api/api-listener.ts';

/** One forwarded request in this many is shed, before any part of it reaches a log. */
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
