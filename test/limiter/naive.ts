/**
 * A naive model of the limiter, written as plainly as possible: lists of grants, filtered. Slow on purpose; it uses
 * no code of the limiter.
 */

interface Grant {
  readonly t: number;
  readonly cost: number;
}

export class NaiveLog {
  grants: Grant[] = [];
  newest = 0;

  live(t: number, window: number): number {
    return this.grants.filter((g) => g.t > t - window).reduce((sum, g) => sum + g.cost, 0);
  }

  wait(t: number, cost: number, limit: number, window: number): number {
    if (cost > limit) return Infinity;
    const candidates = [t, ...this.grants.map((g) => g.t + window).filter((end) => end > t)];
    return candidates.find((at) => this.live(at, window) + cost <= limit)! - t;
  }

  empty(t: number, window: number): number {
    return this.grants.length === 0 ? 0 : Math.max(0, this.newest + window - t);
  }

  ask(asked: number, cost: number, limit: number, window: number, pruneWindow = window): boolean {
    const t = Math.max(asked, this.newest);
    if (this.live(t, window) + cost > limit) return false;
    this.grants = this.grants.filter((g) => g.t > t - pruneWindow);
    this.grants.push({ t, cost });
    this.newest = t;
    return true;
  }
}

/** The largest cost granted in any rolling window; the promise is that it never exceeds the limit. */
export function densestWindow(grants: readonly Grant[], window: number): number {
  let densest = 0;
  for (const end of grants) {
    let cost = 0;
    for (const g of grants) if (g.t <= end.t && g.t > end.t - window) cost += g.cost;
    densest = Math.max(densest, cost);
  }
  return densest;
}
