/** What one of several nodes may grant of a limit alone, without asking the others: of one window of one rule. */

import { GRANULARITY_MILLIS_MAX } from '../api/rule.ts';
import { LocalLimiter } from './library/local-limiter.ts';

/** A key remembers at most so many numbers and two, however much it was granted. */
const GRANULES = 64;

/**
 * Grants each key at most `floor(limit / nodes)` in any rolling window, by whatever meter the cluster keeps the rule: so all nodes
 * together grant no more than the limit by their shares. A grant counts longer than it must, by a 64th of the window at most.
 */
export class NodeShare extends LocalLimiter {
  /** @param nodes of the cluster, 1 and more; the rest as in `LimitWindow` */
  constructor(limit: number, windowMillis: number, nodes: number) {
    // Times are cut to whole milliseconds: one more, or a window could be shorter than it is by what was cut off.
    const widerMillis = windowMillis + 1;
    const granularityMillis = Math.min(Math.ceil(widerMillis / GRANULES), GRANULARITY_MILLIS_MAX);
    super({
      limit: Math.floor(limit / nodes),
      windowMillis: widerMillis,
      ...(granularityMillis > 1 && { granularityMillis }),
    });
  }

  /** Changes nothing. @returns as `LocalLimiter.millisUntilAllowed` does; the arguments are those of `allow` */
  override millisUntilAllowed(key: string, nowMillis: number, cost: number): number {
    return super.millisUntilAllowed(key, nowMillis, cost);
  }

  /** The key begins anew. */
  override forget(key: string): void {
    super.forget(key);
  }
}
